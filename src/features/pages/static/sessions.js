// Ends a session of the list: every `<form data-end>` of the page.

import { onSubmit, sendJson } from './api.js';

for (const session of document.querySelectorAll('[data-session]')) {
  const form = session.querySelector('form[data-end]');
  onSubmit(form, {
    status: session.querySelector('[data-status]'),
    waiting: 'Ending…',
    run: async () => {
      await sendJson('DELETE', form.dataset.end);
      if ('current' in form.dataset) location.assign('/');
      form.remove();
      return 'Ended, with every token on it.';
    },
    explain: () => 'The session could not be ended.',
  });
}
