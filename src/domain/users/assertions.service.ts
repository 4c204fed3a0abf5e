import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { parse as uuidBytes } from 'uuid';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import {
  AuthenticatorsRepository,
  type AssertingKey,
} from '#domain/authenticators/authenticators.repository.js';
import {
  WebAuthnCeremonies,
  credentialIdOf,
  type VerifiedAssertion,
} from '#domain/authenticators/webauthn-ceremonies.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** An assertion as it came, and what it has to answer. */
export interface PresentedAssertion {
  /** An `AuthenticationResponseJSON` that nobody has looked at. */
  readonly credential: unknown;
  readonly challenge: Buffer;
  /** The session it was made in; without one the key itself says whose it is. */
  readonly session: LiveSession | undefined;
  /** The origin that a native client's client data must name; without it the assertion is of a page of ours. */
  readonly nativeOrigin?: string;
}

/** An assertion that is good, and whose it is. */
export interface ProvenAssertion {
  readonly key: AssertingKey;
  readonly assertion: VerifiedAssertion;
}

/** Assertions that somebody logs in with (WebAuthn §7.2): by which key, and whether it may speak for them here. */
@Injectable()
export class Assertions {
  constructor(
    private readonly manager: EntityManager,
    private readonly keys: AuthenticatorsRepository,
    private readonly ceremonies: WebAuthnCeremonies,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Verifies an assertion in everything but the growth of the key's counter. What is refused is audited.
   *
   * @throws DomainError assertion_rejected
   */
  async verify(presented: PresentedAssertion, origin: AuditOrigin): Promise<ProvenAssertion> {
    const { credential, challenge, session, nativeOrigin } = presented;
    const credentialId = credentialIdOf(credential);
    const key = await this.keys.findByCredentialId(this.manager, credentialId);
    try {
      if (!key) throw rejected('This security key is not registered here.');
      assertKeyMayAsk(key, session);
      const assertion = await this.ceremonies.verifyAssertion({
        credential,
        challenge,
        publicKey: key.publicKey,
        credentialId,
        userHandle: Buffer.from(uuidBytes(key.userId)),
        requireUserVerification: key.userVerification,
        requireUserHandle: session === undefined,
        ...(nativeOrigin === undefined ? {} : { nativeOrigin }),
      });
      return { key, assertion };
    } catch (error) {
      if (error instanceof DomainError) {
        await this.#recordFailure(key, error.detail, origin);
      }
      throw error;
    }
  }

  async #recordFailure(
    key: AssertingKey | undefined,
    reason: string,
    origin: AuditOrigin,
  ): Promise<void> {
    await this.audit.record(this.manager, {
      type: 'login_failed',
      actorId: key?.userId ?? null,
      subjectId: key?.userId ?? null,
      orgId: key?.orgId ?? null,
      origin,
      details: { reason },
    });
  }
}

/** @throws DomainError assertion_rejected for another user's key, or for presence alone outside a session */
function assertKeyMayAsk(key: AssertingKey, session: LiveSession | undefined): void {
  if (session && session.user?.id !== key.userId) {
    throw rejected(
      'This security key belongs to another account than this session. Log out first.',
    );
  }
  if (!session && !key.userVerification) {
    throw rejected('This security key cannot verify its user: sign in with your provider first.');
  }
}

function rejected(detail: string): DomainError {
  return new DomainError('assertion_rejected', detail);
}
