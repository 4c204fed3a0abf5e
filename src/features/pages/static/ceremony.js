// Runs a ceremony, which is the exchange with a security key: it gets options from the service,
// asks the key, and sends its response.

import { Refusal, say, sendJson } from './api.js';
import { creationOptions, credentialJson, requestOptions } from './webauthn-json.js';

/**
 * Asks the security key. `navigator.credentials` is read at each call, because a script of the demo
 * may have replaced it after this file was loaded.
 */
const ASK = {
  enroll: async (json) => navigator.credentials.create({ publicKey: creationOptions(json) }),
  login: async (json) => navigator.credentials.get({ publicKey: requestOptions(json) }),
};

/** The texts for the errors of the browser itself (WebAuthn §5.1.3 and §5.1.4). */
const EXPLANATIONS = {
  NotAllowedError:
    'The key was not used: it was cancelled, or took too long. Use a separate security key, not a passkey of this device: plug it in, enter its PIN, touch it when it blinks, and try again.',
  AbortError: 'The browser stopped waiting for the key. Please try again.',
  InvalidStateError:
    'This security key is enrolled for this account already. Log in with it, or use another one.',
  NotSupportedError: 'This security key cannot be used here. Please try another one.',
  ConstraintError: 'This security key cannot check a PIN or a fingerprint. Please try another one.',
  SecurityError: 'Security keys do not work at this address. Open the page at its usual address.',
};

/**
 * The texts for error codes of a refused key. They replace the texts of the service for these
 * codes, which are for experts.
 */
const PLAIN = {
  attestation_rejected:
    'This key could not prove that it is a genuine YubiKey. Use a YubiKey of Yubico’s own make.',
  credential_exists: 'Use another security key, or log in to the account that has this one.',
};

const TOUCH = 'Waiting for your security key. Touch it when it blinks.';

/**
 * The error codes after which the security key has a credential that the service did not store, so
 * that the browser should remove it.
 */
const ORPHANS = new Set([
  'attestation_rejected',
  'attestation_missing',
  'device_passkey',
  'model_not_allowed',
  'user_verification_missing',
  'enrollment_refused',
  'enrollment_pass_required',
  'enrollment_pass_invalid',
  'already_enrolled',
  'account_inactive',
]);

/**
 * Returns true if the browser supports security keys. Otherwise the status line of the page says
 * that it does not.
 */
export function hasKeys(status) {
  if (navigator.credentials) return true;
  const message = 'This browser offers no security keys here. Use a current one, over HTTPS.';
  say(status, 'error', message);
  return false;
}

/** Returns the text of an error of the browser. */
export function explain(error) {
  return EXPLANATIONS[error.name] ?? 'The security key could not be used.';
}

/**
 * Enrolls a security key or logs in with one.
 *
 * @param kind `enroll` or `login`
 * @param options.redirectTo the page that opens afterwards
 * @param options.name the name of a new key
 * @param options.pass the re-enrollment pass, if the page asks for one
 * @returns the last response of the service
 */
export async function ceremony(kind, { redirectTo, name, pass } = {}) {
  const path = `/${kind}/webauthn`;
  const begin = { redirect_to: redirectTo, pass };
  const { state, publicKey } = await sendJson('POST', `${path}/start`, begin);
  if (kind === 'login') {
    const credential = credentialJson(await ASK.login(publicKey));
    return sendJson('POST', `${path}/complete`, { state, credential });
  }
  const made = await ASK.enroll(publicKey).catch((error) => giveUp(path, state, error));
  return completeKey(made, publicKey, (credential) =>
    sendJson('POST', `${path}/complete`, { state, credential, name }),
  );
}

/**
 * Registers a further key of the user. If the last touch of a key is too old, it first asks the
 * user to touch an enrolled key.
 *
 * @param status the status line of the page
 * @param options.name the name of the new key
 * @param options.confirm the text that the page shows while the user has to touch an enrolled key
 * @returns the last response of the service
 */
export async function registerKey(status, { name, confirm }) {
  const path = '/v1/keys/register';
  const start = () => sendJson('POST', `${path}/start`, {});
  const { state, publicKey } = await withTouch(status, start, confirm);
  say(status, 'waiting', 'Now use the new key: plug it in, and touch it when it blinks.');
  return completeKey(await ASK.enroll(publicKey), publicKey, (credential) => {
    const complete = () => sendJson('POST', `${path}/complete`, { state, credential, name });
    return withTouch(status, complete, 'It took long. Touch one of the keys that you had, again.');
  });
}

/**
 * Sends the credential of a new key to the service. If the service refuses it, the browser is told
 * to remove it, and the user gets an explanation.
 */
async function completeKey(made, publicKey, send) {
  const credential = credentialJson(made);
  try {
    return await send(credential);
  } catch (error) {
    if (ORPHANS.has(error.code)) await forget(publicKey.rp.id, credential.id);
    if (!(error.code in PLAIN)) throw error;
    throw new Refusal(`${PLAIN[error.code]} (${error.message})`, error);
  }
}

/**
 * Reports to the service that the browser made no credential.
 * @throws Refusal with the reference of the report, if there is one
 */
async function giveUp(path, state, error) {
  const report = sendJson('POST', `${path}/failed`, { state, error: error.name });
  const { reference } = await report.catch(() => ({}));
  throw new Refusal(error instanceof Refusal ? error.message : explain(error), { reference });
}

/**
 * Tells the browser that the service does not know a credential, so that the browser can remove it
 * (WebAuthn Level 3 §5.1.10.2).
 */
async function forget(rpId, credentialId) {
  try {
    await globalThis.PublicKeyCredential?.signalUnknownCredential?.({ rpId, credentialId });
  } catch {
    // Nothing is lost if the browser cannot remove the credential: the user sees the refusal in any
    // case.
  }
}

/**
 * Sends a request that needs a recent touch of the security key. If the last touch is too old, it
 * asks for one touch and repeats the request.
 *
 * @param status the status line of the page
 * @param send sends the request by `sendJson`
 * @param waiting the text that the page shows while the user has to touch the key
 * @returns the response to the request
 */
export async function withTouch(status, send, waiting = TOUCH) {
  try {
    return await send();
  } catch (error) {
    const isStepUp = error instanceof Refusal && error.code === 'insufficient_user_authentication';
    if (!isStepUp) throw error;
    say(status, 'waiting', waiting);
    await ceremony('login');
    return send();
  }
}
