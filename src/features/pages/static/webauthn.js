// Enrolls a security key or logs in with one: every `<form data-ceremony>` of the page.

import { onSubmit } from './api.js';
import { ceremony, explain, hasKeys } from './ceremony.js';

for (const form of document.querySelectorAll('form[data-ceremony]')) {
  const status = form.querySelector('[data-status]');
  if (hasKeys(status)) {
    onSubmit(form, {
      status,
      waiting: 'Waiting for your security key. Touch it when it blinks.',
      run: (fields) => leave(form.dataset, fields.get('name')?.trim() || undefined),
      explain,
    });
  }
}

/** Runs the ceremony of a form, then opens the next page. */
async function leave({ ceremony: kind, redirectTo }, name) {
  const { redirect_to } = await ceremony(kind, { redirectTo, name });
  location.assign(redirect_to);
  return 'Done. One moment…';
}
