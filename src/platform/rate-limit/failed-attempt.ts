import { RouteTable } from '#platform/text/route-table.js';

/** How a request of the Authentication tier was answered. */
export interface AnsweredRequest {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  /** The code of the error, ours or that of OAuth; undefined where there was none. */
  readonly error: string | undefined;
}

/** Errors of status 401 that a valid credential meets: an older assertion (RFC 9470), and DPoP's first request (RFC 9449 §8). */
const OF_VALID_CREDENTIALS: ReadonlySet<string | undefined> = new Set([
  'insufficient_user_authentication',
  'use_dpop_nonce',
]);

/** The errors of status 400 that say that a secret was not the right one (RFC 6749 §5.2). */
const WRONG_SECRETS: ReadonlySet<string | undefined> = new Set(['invalid_client', 'invalid_grant']);

/** Where a status of 400 says that a ceremony failed. */
const COMPLETIONS = new RouteTable([
  ['/login/webauthn/complete', true],
  ['/enroll/webauthn/complete', true],
  ['/v1/keys/register/complete', true],
]);

const REGISTRATION = new RouteTable([['/oauth/register', true]]);

/**
 * Tells whether an answer counts against the network of its client: a failed authentication, or a client that was registered. A
 * device that polls (`authorization_pending`, RFC 8628 §3.5) has not failed.
 */
export function isFailedAttempt({ method, path, status, error }: AnsweredRequest): boolean {
  if (status === 401) return !OF_VALID_CREDENTIALS.has(error);
  if (status === 400) return WRONG_SECRETS.has(error) || COMPLETIONS.of(path) === true;
  return status === 201 && method === 'POST' && REGISTRATION.of(path) === true;
}
