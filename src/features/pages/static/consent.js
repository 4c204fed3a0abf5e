// The page that asks whether a client may know who somebody is: the answer is told, and the browser goes on by itself, since
// no form of ours may end up at a client's address.

import { onSubmit, sendJson } from './api.js';

for (const form of document.querySelectorAll('form[data-consent]')) {
  onSubmit(form, {
    status: form.querySelector('[data-status]'),
    waiting: 'One moment…',
    run: async (_fields, { value: decision }) => {
      const { redirect_to } = await sendJson('POST', `${form.dataset.consent}/${decision}`, {});
      location.assign(redirect_to);
      return 'Done. One moment…';
    },
    explain: () => 'Something went wrong. Please try again.',
  });
}
