// The ceremonies of a security key, from our options to our answer.

import { Refusal, say, sendJson } from './api.js';
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

/** What the reader is told of an error that the browser threw. */
export function explain(error) {
  return EXPLANATIONS[error.name] ?? 'The security key could not be used.';
}

/**
 * Runs a ceremony to its end.
 *
 * @param kind `enroll` or `login`
 * @param options.redirectTo where the person wants to go afterwards
 * @param options.name of a new key
 * @returns the answer of its last step
 */
export async function ceremony(kind, { redirectTo, name } = {}) {
  const path = `/${kind}/webauthn`;
  const { state, publicKey } = await sendJson('POST', `${path}/start`, { redirect_to: redirectTo });
  const credential = await ASK[kind](publicKey);
  return sendJson('POST', `${path}/complete`, {
    state,
    credential: credentialJson(credential),
    name,
  });
}

/**
 * Sends what needs a recent touch of the security key. Where the last one is too long ago, the key is asked for once, and it is
 * sent again.
 *
 * @param status the live region of the page
 * @param send a request of ours, as `sendJson` makes it
 * @returns the answer to the request
 */
export async function withTouch(status, send) {
  try {
    return await send();
  } catch (error) {
    const isStepUp = error instanceof Refusal && error.code === 'insufficient_user_authentication';
    if (!isStepUp) throw error;
    say(status, 'waiting', 'Waiting for your security key. Touch it when it blinks.');
    await ceremony('login');
    return send();
  }
}
