// Issues an SSH certificate in the browser, by the form `<form data-ssh-certificate>` of the start
// page.

import { onSubmit, Refusal, sendJson } from './api.js';
import { localTime } from './page.js';

const form = document.querySelector('form[data-ssh-certificate]');
const result = form.querySelector('[data-result]');

onSubmit(form, {
  status: form.querySelector('[data-status]'),
  waiting: 'Asking for a certificate…',
  run: async (fields) => {
    result.hidden = true;
    const publicKey = fields.get('public_key').trim();
    // The server would refuse a private key, but by then the key would have left this machine.
    if (publicKey.includes('PRIVATE KEY')) {
      throw new Refusal('This is a private key: keep it to yourself. Nothing was sent.');
    }
    const issued = await sendJson('POST', '/v1/credentials/ssh', { public_key: publicKey });
    result.hidden = false;
    result.querySelector('textarea').value = issued.certificate;
    return `Expires ${localTime(issued.valid_before)}, serial ${issued.serial}.`;
  },
  explain: () => 'The certificate could not be issued.',
});
