/**
 * The facts about a finished request that decide whether it was a failed attempt to authenticate.
 */
export interface RequestOutcome {
  readonly status: number;
  /** The error code of this service or of OAuth; undefined without an error. */
  readonly error: string | undefined;
}

/**
 * The errors of status 401 that are no failed attempts, because the credential of the client is
 * valid: the last touch of the key is too old (RFC 9470), or the first request with DPoP has no
 * nonce yet (RFC 9449 §8).
 */
const OF_VALID_CREDENTIALS: ReadonlySet<string | undefined> = new Set([
  'insufficient_user_authentication',
  'use_dpop_nonce',
]);

/** The errors of status 400 for a wrong secret (RFC 6749 §5.2). */
const WRONG_SECRETS: ReadonlySet<string | undefined> = new Set(['invalid_client', 'invalid_grant']);

/**
 * Returns true if a response counts as a failed attempt of the client's network. That is so if
 * authentication failed, or if the response has the status that the route adds. A device that polls
 * (`authorization_pending`, RFC 8628 §3.5) has not failed.
 *
 * @param failureStatus see {@link RoutePolicy.failureStatus}
 */
export function isFailedAttempt(
  { status, error }: RequestOutcome,
  failureStatus?: number,
): boolean {
  if (status === 401) return !OF_VALID_CREDENTIALS.has(error);
  return status === failureStatus || (status === 400 && WRONG_SECRETS.has(error));
}
