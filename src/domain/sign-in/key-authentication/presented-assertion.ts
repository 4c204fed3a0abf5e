import type { AssertingKey } from '#domain/keys/authenticators/authenticators.repository.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { DomainError } from '#platform/errors/domain-error.js';

/**
 * An assertion (the signature of a security key in a login) as the client sends it, with the
 * challenge that it must contain.
 */
export interface PresentedAssertion {
  /** An `AuthenticationResponseJSON` that is not yet parsed. */
  readonly credential: unknown;
  readonly challenge: Buffer;
  /**
   * The session in which the ceremony began; undefined for a login without a session, in which the
   * key identifies the user.
   */
  readonly session: LiveSession | undefined;
  /**
   * The origin in the client data of a native client such as a command line; undefined if a page of
   * the service asked for the assertion.
   */
  readonly nativeOrigin?: string;
  /**
   * The OAuth client, such as `svc-cli`, that alone uses the new session; undefined for a session
   * of a browser.
   */
  readonly clientId?: string;
}

/**
 * Checks that a key may be used to log in. In a session, it must be a key of the user of the
 * session. Without a session, it must be a key that verifies its user by a PIN or a fingerprint.
 * Otherwise a thief of the key could log in without any other proof.
 *
 * @throws DomainError assertion_rejected
 */
export function assertKeyMayLogIn(key: AssertingKey, session: LiveSession | undefined): void {
  if (session && session.user?.id !== key.userId) {
    throw rejected(
      'This security key belongs to another account than this session. Log out first.',
    );
  }
  if (!session && !key.userVerification) {
    throw rejected('This security key cannot verify its user: sign in with your provider first.');
  }
}

/**
 * Returns the error for an assertion (the signature of a key in a login) that is not accepted.
 * `detail` is for the user.
 */
export function rejected(detail: string): DomainError {
  return new DomainError('assertion_rejected', detail);
}
