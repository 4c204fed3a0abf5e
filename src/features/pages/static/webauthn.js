// Enrolls a security key or logs in with one: every `<form data-ceremony>` of the page.

import { onSubmit, say } from './api.js';
import { ceremony, explain } from './ceremony.js';

for (const form of document.querySelectorAll('form[data-ceremony]')) {
  const status = form.querySelector('[data-status]');
  if (navigator.credentials) {
    onSubmit(form, {
      status,
      waiting: 'Waiting for your security key. Touch it when it blinks.',
      run: (fields) => leave(form.dataset, fields.get('name')?.trim() || undefined),
      explain,
    });
  } else {
    say(
      status,
      'error',
      'This browser offers no security keys here. Use a current one, over HTTPS.',
    );
  }
}

/** Runs the ceremony of a form, then opens the next page. */
async function leave({ ceremony: kind, redirectTo }, name) {
  const { redirect_to } = await ceremony(kind, { redirectTo, name });
  location.assign(redirect_to);
  return 'Done. One moment…';
}
