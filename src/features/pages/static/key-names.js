// Renames a security key of the list: every `<form data-rename>` of the page.

import { onSubmit, sendJson } from './api.js';

for (const key of document.querySelectorAll('[data-key]')) {
  const form = key.querySelector('form[data-rename]');
  onSubmit(form, {
    status: key.querySelector('[data-status]'),
    waiting: 'Saving…',
    run: async (fields) => {
      const { name } = await sendJson('PATCH', form.dataset.rename, { name: fields.get('name') });
      key.querySelector('[data-name]').textContent = name;
      form.elements.name.value = name;
      const details = form.closest('details');
      details.open = false;
      details.querySelector('summary').focus();
      return `Renamed to “${name}”.`;
    },
    explain: () => 'The key could not be renamed.',
  });
}
