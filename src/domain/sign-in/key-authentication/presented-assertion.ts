import type { AssertingKey } from '#domain/keys/authenticators/authenticators.repository.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** An assertion of a security key as the client sends it, with the ceremony it belongs to. */
export interface PresentedAssertion {
  /** An `AuthenticationResponseJSON` that is not yet parsed. */
  readonly credential: unknown;
  readonly challenge: Buffer;
  /** The session of the ceremony. Without a session, the key identifies the user. */
  readonly session: LiveSession | undefined;
  /** The origin in the client data of a native client; undefined for a page of the service. */
  readonly nativeOrigin?: string;
  /** The client that gets a session for itself, beside any session of a browser. */
  readonly clientId?: string;
}

/**
 * Checks that a key may log in here: in a session only a key of its user; without a session only a
 * key that can verify its user.
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

/** Returns the error for an assertion that is not accepted. */
export function rejected(detail: string): DomainError {
  return new DomainError('assertion_rejected', detail);
}
