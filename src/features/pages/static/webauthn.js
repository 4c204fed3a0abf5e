// Enrolling a security key and logging in with one: every `<form data-ceremony>` of the page.

import { onSubmit, say, sendJson } from './api.js';
import { creationOptions, credentialJson, requestOptions } from './webauthn-json.js';

/** Asks the security key: `navigator.credentials` is looked up at the last moment, since a script may replace it. */
const ASK = {
  enroll: (json) => navigator.credentials.create({ publicKey: creationOptions(json) }),
  login: (json) => navigator.credentials.get({ publicKey: requestOptions(json) }),
};

/** What the browser's own refusals mean to a person (WebAuthn §5.1.3 and §5.1.4). */
const EXPLANATIONS = {
  NotAllowedError: 'The key was not used: it was cancelled, or took too long. Please try again.',
  AbortError: 'The browser stopped waiting for the key. Please try again.',
  InvalidStateError: 'This security key is registered already.',
  NotSupportedError: 'This security key cannot be used here. Please try another one.',
  ConstraintError: 'This security key cannot check a PIN or a fingerprint. Please try another one.',
  SecurityError: 'Security keys do not work at this address. Open the page at its usual address.',
};

for (const form of document.querySelectorAll('form[data-ceremony]')) {
  const status = form.querySelector('[data-status]');
  if (navigator.credentials) {
    onSubmit(form, {
      status,
      waiting: 'Waiting for your security key. Touch it when it blinks.',
      run: (fields) => ceremony(form.dataset, fields),
      explain: (error) => EXPLANATIONS[error.name] ?? 'The security key could not be used.',
    });
  } else {
    say(
      status,
      'error',
      'This browser offers no security keys here. Use a current one, over HTTPS.',
    );
  }
}

/** Runs a ceremony to its end, and leaves the page. */
async function ceremony({ ceremony: kind, redirectTo }, fields) {
  const path = `/${kind}/webauthn`;
  const { state, publicKey } = await sendJson('POST', `${path}/start`, { redirect_to: redirectTo });
  const credential = await ASK[kind](publicKey);
  const completed = await sendJson('POST', `${path}/complete`, {
    state,
    credential: credentialJson(credential),
    name: fields.get('name')?.trim() || undefined,
  });
  location.assign(completed.redirect_to);
  return 'Done. One moment…';
}
