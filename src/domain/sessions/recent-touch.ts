import { DomainError, type Challenge } from '#platform/errors/domain-error.js';

/** Seconds that the last assertion may lie back: what a route names as `touchedWithinSeconds`. */
export const RECENT_TOUCH = {
  /** The security keys of a user, and the approval of a device. */
  own: 60,
  /** What an admin changes, and the secrets of applications. */
  admin: 300,
} as const;

/**
 * Refuses an assertion that lies too far back (RFC 9470 §3). One that another replica dates ahead is recent.
 *
 * @param challenge how an access token has to come
 * @throws DomainError insufficient_user_authentication, with `max_age` in its challenge
 */
export function assertTouchedWithin(seconds: number, authTime: Date, challenge: Challenge): void {
  if (Date.now() - authTime.getTime() <= seconds * 1000) return;
  throw new DomainError(
    'insufficient_user_authentication',
    `Touch your security key again: this needs an assertion of the last ${inWords(seconds)}.`,
    { challenge: { ...challenge, maxAge: seconds } },
  );
}

function inWords(seconds: number): string {
  return seconds === 60 ? 'minute' : `${seconds / 60} minutes`;
}
