import type { RefusedEnrollment } from '#domain/keys/enrollment/enrollment.service.js';

/**
 * The meanings of the errors of `navigator.credentials.create()`. A browser reports by them why no
 * key was enrolled (WebAuthn §5.1.3, step 21 and following).
 */
const MEANINGS: ReadonlyMap<string, RefusedEnrollment> = new Map([
  [
    'NotAllowedError',
    { code: 'not_completed', reason: 'It was cancelled, took too long, or no key could answer.' },
  ],
  ['AbortError', { code: 'not_completed', reason: 'The browser stopped waiting for the key.' }],
  [
    'InvalidStateError',
    { code: 'already_on_key', reason: 'The key holds a credential of this account already.' },
  ],
  ['NotSupportedError', { code: 'not_supported', reason: 'The key does not know ES256.' }],
  [
    'ConstraintError',
    { code: 'not_supported', reason: 'The key cannot do what was asked, such as check a PIN.' },
  ],
  [
    'SecurityError',
    { code: 'wrong_address', reason: 'The page was opened at a URL without security keys.' },
  ],
]);

/**
 * Explains an error of the browser by its name. The text of the error is not used, because a client
 * can send any text.
 */
export function browserRefusal(errorName: string): RefusedEnrollment {
  const meaning = MEANINGS.get(errorName);
  return meaning ?? { code: 'browser_failed', reason: 'The browser could not use the key.' };
}
