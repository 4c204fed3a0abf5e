// The page that shows which device wants to act for somebody: approved with a touch of the key, or refused.

import { Refusal, onSubmit, say, sendJson } from './api.js';
import { ceremony, explain } from './ceremony.js';

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
      await decide(decision, form.dataset.userCode, status);
      form.querySelector('[data-actions]').remove(); // a code is decided once
      return DONE[decision];
    },
    explain,
  });
}

/** Tells the decision; where the last touch of the key is too long ago, after another one. */
async function decide(decision, userCode, status) {
  const send = () => sendJson('POST', `/device/${decision}`, { user_code: userCode });
  try {
    await send();
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'insufficient_user_authentication')
      throw error;
    say(status, 'waiting', 'Waiting for your security key. Touch it when it blinks.');
    await ceremony('login');
    await send();
  }
}
