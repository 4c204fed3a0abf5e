import { Inject, Injectable } from '@nestjs/common';
import type { BootstrapSession, LiveSession, PendingSession } from '#domain/sessions/session.js';
import type { VerifiedRegistration } from '#domain/authenticators/webauthn-ceremonies.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { domainOfEmail } from '#domain/organizations/email-address.js';

/** Whose first key may be enrolled: asked before a ceremony begins and again before its key is taken. */
@Injectable()
export class EnrollmentPolicy {
  readonly #allowedDomains: ReadonlySet<string> | undefined;

  constructor(@Inject(CONFIG) config: Config) {
    this.#allowedDomains = config.enrollment.allowedDomains;
  }

  /** @throws DomainError already_enrolled, or enrollment_refused (no e-mail, a domain outside SVC_ALLOWED_DOMAINS) */
  assertMayEnroll(session: LiveSession): asserts session is BootstrapSession | PendingSession {
    if (session.enrolled) throw alreadyEnrolled();
    const email = session.user ? session.user.email : session.pendingIdentity.email;
    if (email === null) {
      throw new DomainError('enrollment_refused', 'This account has no e-mail address.');
    }
    if (this.#allowedDomains && !this.#allowedDomains.has(domainOfEmail(email))) {
      throw new DomainError(
        'enrollment_refused',
        'People with an e-mail address in this domain may not enroll here.',
      );
    }
  }
}

/**
 * Demands a PIN or a fingerprint of a key that can check one: without it the key could never log in. A U2F key can check
 * none, and enrolls for presence alone.
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

/** The answer to somebody who has a key: a bootstrap session is not enough to add another. */
export function alreadyEnrolled(): DomainError {
  return new DomainError(
    'already_enrolled',
    'This account has a security key already. Log in with it.',
  );
}
