// Enrolls a security key or logs in with one, by every form `<form data-ceremony>` of the page.

import { onSubmit } from './api.js';
import { ceremony, explain, hasKeys } from './ceremony.js';

for (const form of document.querySelectorAll('form[data-ceremony]')) {
  const status = form.querySelector('[data-status]');
  if (hasKeys(status)) {
    onSubmit(form, {
      status,
      waiting: 'Waiting for your security key. Touch it when it blinks.',
      run: (fields) => leave(form.dataset, textOf(fields, 'name'), textOf(fields, 'pass')),
      explain,
    });
  }
}

/** Returns the text of a field; undefined for an empty or missing one. */
function textOf(fields, name) {
  return fields.get(name)?.trim() || undefined;
}

/** Enrolls a key or logs in, as the form says, and then opens the next page. */
async function leave({ ceremony: kind, redirectTo }, name, pass) {
  const { redirect_to } = await ceremony(kind, { redirectTo, name, pass });
  location.assign(redirect_to);
  return 'Done. One moment…';
}
