// The script of the consent page. It sends the decision and then opens the next address itself,
// because the Content-Security-Policy forbids a form to redirect to a client.

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
