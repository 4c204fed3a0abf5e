// The script of the device page, on which the user approves a device with a touch of the key, or
// denies it.

import { onSubmit, sendJson } from './api.js';
import { explain, withTouch } from './ceremony.js';

const DONE = {
  approve: 'Approved. Go back to the device: it goes on by itself.',
  deny: 'Refused. The device gets nothing.',
};

for (const form of document.querySelectorAll('form[data-user-code]')) {
  const status = form.querySelector('[data-status]');
  onSubmit(form, {
    status,
    waiting: 'One moment…',
    run: async (_fields, { value: decision }) => {
      const body = { user_code: form.dataset.userCode };
      await withTouch(status, () => sendJson('POST', `/device/${decision}`, body));
      form.querySelector('[data-actions]').remove(); // a code can be decided only once
      return DONE[decision];
    },
    explain,
  });
}
