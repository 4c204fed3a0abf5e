import { DomainError, type Challenge } from '#platform/errors/domain-error.js';

/**
 * The greatest ages, in seconds, of the last touch of a security key, for routes that demand a
 * recent touch (`touchedWithinSeconds`).
 */
export const RECENT_TOUCH = {
  /** For changes of a user's own security keys, and the approval of a device code. */
  own: 60,
  /** For changes by an admin, and every change of an application. */
  admin: 300,
} as const;

/** The access rule of a route by which users manage their own keys, sessions and credentials. */
export const USER_ACCESS = {
  session: 'verified',
  origin: 'own',
  scope: 'svc:credentials',
} as const;

/**
 * The access rule of {@link USER_ACCESS} that also demands a recent touch of the security key (RFC
 * 9470). It is for acts that must not be possible with a stolen session alone.
 */
export const USER_ACCESS_BY_TOUCH = {
  ...USER_ACCESS,
  touchedWithinSeconds: RECENT_TOUCH.own,
} as const;

/** The access rule of a route by which admins read. */
export const ADMIN_READS = { session: 'verified', origin: 'own', scope: 'svc:admin' } as const;

/**
 * The access rule of a route by which admins make changes. It demands a recent touch of the
 * security key.
 */
export const ADMIN_WRITES = { ...ADMIN_READS, touchedWithinSeconds: RECENT_TOUCH.admin } as const;

/**
 * The facts of the last touch of a security key in a session, which decide if the touch is recent
 * enough.
 */
export interface Touch {
  readonly authTime: Date;
  readonly isOfDevice: boolean;
}

/**
 * Returns true if the last touch of a security key in a session is at most `seconds` old. A time in
 * the future counts as recent, because the clocks of replicas differ. For a session that a device
 * code opened, the result is always false, because the key was touched in a browser.
 *
 * @param now milliseconds since 1970
 */
export function isTouchedWithin(seconds: number, touch: Touch, now: number): boolean {
  return !touch.isOfDevice && now - touch.authTime.getTime() <= seconds * 1000;
}

/**
 * Refuses a session whose last touch of a security key is too old (RFC 9470 §3), by the rule of
 * {@link isTouchedWithin}.
 *
 * @param challenge the challenge for the scheme of the request
 * @param now milliseconds since 1970
 * @throws DomainError insufficient_user_authentication, with `max_age` in its challenge
 */
export function assertTouchedWithin(
  seconds: number,
  touch: Touch,
  challenge: Challenge,
  now: number,
): void {
  if (isTouchedWithin(seconds, touch, now)) return;
  const detail = touch.isOfDevice
    ? 'A login by a device code cannot do this. Log in in a browser, and touch your security key there.'
    : `Touch your security key again: this needs an assertion of the last ${inWords(seconds)}.`;
  throw new DomainError('insufficient_user_authentication', detail, {
    challenge: { ...challenge, maxAge: seconds },
  });
}

function inWords(seconds: number): string {
  return seconds === 60 ? 'minute' : `${seconds / 60} minutes`;
}
