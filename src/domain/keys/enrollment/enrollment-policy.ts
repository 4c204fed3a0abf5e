import type { VerifiedRegistration } from '../authenticators/webauthn-ceremonies.service.js';
import { domainOfEmail } from '#domain/organizations/email-address.js';
import type { BootstrapSession, LiveSession, PendingSession } from '#domain/sessions/session.js';
import { DomainError } from '#platform/errors/domain-error.js';

/**
 * Checks that the user of a session may enroll a first key. The check runs before the ceremony, and
 * again before the key is accepted, because the facts can change meanwhile.
 *
 * @param allowedDomains SVC_ALLOWED_DOMAINS; undefined allows every domain
 * @throws DomainError already_enrolled; enrollment_refused without an e-mail address, or outside
 *   the allowed domains
 */
export function assertMayEnroll(
  session: LiveSession,
  allowedDomains: ReadonlySet<string> | undefined,
): asserts session is BootstrapSession | PendingSession {
  if (session.enrolled) throw alreadyEnrolled();
  const { email } = session.user ?? session.pendingIdentity;
  if (email === null) {
    throw new DomainError('enrollment_refused', 'This account has no e-mail address.');
  }
  if (allowedDomains && !allowedDomains.has(domainOfEmail(email))) {
    throw new DomainError(
      'enrollment_refused',
      'Users with an e-mail address in this domain may not enroll. Ask an administrator of the service.',
    );
  }
}

/**
 * Demands that a key that can verify its user by a PIN or a fingerprint did so at the enrollment.
 * The service demands the same at each login, so the key could otherwise never be used. A U2F key
 * cannot verify its user, so a touch is enough for it.
 *
 * @throws DomainError user_verification_missing
 */
export function assertUserVerified(
  registration: Pick<VerifiedRegistration, 'canVerifyUser' | 'userVerified'>,
): void {
  if (!registration.canVerifyUser || registration.userVerified) return;
  throw new DomainError(
    'user_verification_missing',
    'Your security key checked neither a PIN nor a fingerprint. Set a PIN for the key in the settings of your system or in Yubico Authenticator, then enroll it again.',
  );
}

/** The most security keys that a user can have. */
export const MOST_KEYS = 20;

/** Returns the error for a user who has {@link MOST_KEYS} keys. */
export function tooManyKeys(): DomainError {
  return new DomainError(
    'limit_reached',
    `You have ${MOST_KEYS} keys, which is the most. Remove one that you do not use, then add this one.`,
  );
}

/**
 * Returns the error for a user who already has a key. Such a user must log in with the existing key
 * to add another one; a login at the identity provider alone is not enough.
 */
export function alreadyEnrolled(): DomainError {
  return new DomainError(
    'already_enrolled',
    'This account has a security key already. Log in with it.',
  );
}
