import { Injectable, Logger } from '@nestjs/common';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { parse as uuidBytes } from 'uuid';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { isFipsKey } from '#domain/keys/authenticators/authenticator-models.js';
import {
  AuthenticatorsRepository,
  type AssertingKey,
} from '#domain/keys/authenticators/authenticators.repository.js';
import {
  WebAuthnCeremonies,
  credentialIdOf,
  type VerifiedAssertion,
} from '#domain/keys/authenticators/webauthn-ceremonies.service.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import { assertProviderSinceReconciliation } from '#domain/sessions/provider-login/provider-login.repository.js';
import { AAL3, assuranceOf } from '#domain/sessions/session.js';
import { Sessions, type OpenedSession } from '#domain/sessions/sessions.service.js';
import { newUuid } from '#platform/clock/random.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { assertKeyMayLogIn, rejected, type PresentedAssertion } from './presented-assertion.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * The error codes of a login that is refused although the assertion of the key was verified. The
 * audit log records these refusals, in addition to those of assertions that are not valid.
 */
const REFUSALS: readonly string[] = ['account_inactive', 'sign_in_refused', 'sign_in_required'];

/**
 * The user for the sessions of certification test mode, in which conformance tests log in without a
 * key. The domain `.invalid` is reserved (RFC 2606 §2), so no real user can have this e-mail
 * address.
 */
const SYNTHETIC_USER = { email: 'certification@svc.invalid', name: 'Certification Test' } as const;

/** A session of certification test mode, which no security key opened. */
export interface SyntheticSession extends OpenedSession {
  readonly userId: string;
}

/**
 * Logs users in with security keys. A login opens a verified session, in which credentials may be
 * issued.
 */
@Injectable()
export class KeyAuthentication {
  readonly #security = new Logger('security');

  constructor(
    private readonly dataSource: DataSource,
    private readonly directory: UserDirectory,
    private readonly keys: AuthenticatorsRepository,
    private readonly ceremonies: WebAuthnCeremonies,
    private readonly sessions: Sessions,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Verifies an assertion (the signature of a security key in a login). It then makes the session
   * of the request verified, or opens a verified session if there is none. If the level of the
   * session rises, a new session with a new token replaces it. If the level stays, only `auth_time`
   * is renewed, and the token stays.
   *
   * @returns the new session, or undefined if the present session stays
   * @throws DomainError assertion_rejected, account_inactive, sign_in_refused and sign_in_required.
   *   These are audited, except assertion_rejected for a credential that cannot be parsed and for a
   *   key that was removed during the login. It also throws unauthenticated, which is not audited
   */
  async logIn(
    presented: PresentedAssertion,
    origin: AuditOrigin,
  ): Promise<OpenedSession | undefined> {
    const { key, assertion } = await this.#verify(presented, origin);
    // If a key was enrolled without user verification, it proves only that it was touched, even if
    // its response claims more.
    const userVerified = assertion.userVerified && key.userVerification;
    const loggedIn = withTransactionRetry(this.dataSource, async (tx) => {
      const { id, orgId, email } = await this.directory.lockActive(tx, key.userId);
      await this.directory.assertBound(tx, { id });
      await assertProviderSinceReconciliation(tx, id, presented.session?.id);
      const about = { actorId: id, subjectId: id, orgId, origin };
      const counter = await this.keys.advanceCounter(tx, key.id, assertion.signCount);
      if (counter === 'gone') throw rejected('This security key is not registered any more.');
      if (counter === 'stuck') {
        const details = { ...detailsOf(key), reason: 'signature counter did not grow' };
        await this.audit.record(tx, { type: 'login_failed', ...about, details });
        return counter;
      }
      if (orgId !== null && email !== null) {
        await this.directory.appointListed(tx, { id, orgId, email }, origin);
      }
      const session = await this.#raise(tx, key, userVerified, presented, origin);
      const details = { ...detailsOf(key), user_verified: userVerified };
      await this.audit.record(tx, { type: 'login_success', ...about, details });
      return session;
    });
    const outcome = await this.#recordingRefusal(loggedIn, key, origin);
    // The error for a counter that did not rise is thrown after the transaction, because an error
    // inside would roll back its audit event.
    if (outcome === 'stuck') {
      this.#security.warn({ keyId: key.id, userId: key.userId }, 'signature counter did not grow');
      throw rejected(
        'The signature counter of this key did not increase: the key may have been copied.',
      );
    }
    return outcome;
  }

  /**
   * Opens a session of certification test mode. The session works for OAuth only, and for no page
   * or API.
   */
  async logInSynthetic(origin: AuditOrigin): Promise<SyntheticSession> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      const userId = await this.directory.ensureOutsider(tx, { id: newUuid(), ...SYNTHETIC_USER });
      const session = { level: 'synthetic', userId, amr: [], acr: null } as const;
      const opened = await this.sessions.open(tx, session, origin);
      await this.audit.record(tx, {
        type: 'login_success',
        actorId: userId,
        subjectId: userId,
        orgId: null,
        origin,
        details: { synthetic: true },
      });
      return { ...opened, userId };
    });
  }

  /**
   * Verifies an assertion of a security key (WebAuthn §7.2). The audit log records a refusal. The
   * caller must still check the signature counter.
   *
   * @throws DomainError assertion_rejected
   */
  async #verify(
    { credential, challenge, session, nativeOrigin }: PresentedAssertion,
    origin: AuditOrigin,
  ): Promise<{ readonly key: AssertingKey; readonly assertion: VerifiedAssertion }> {
    const credentialId = credentialIdOf(credential);
    const key = await this.keys.findByCredentialId(this.dataSource.manager, credentialId);
    try {
      if (!key) throw rejected('This security key is not registered here.');
      assertKeyMayLogIn(key, session);
      const assertion = await this.ceremonies.verifyAssertion({
        credential,
        challenge,
        publicKey: key.publicKey,
        credentialId,
        userHandle: Buffer.from(uuidBytes(key.handleId)),
        requireUserVerification: key.userVerification,
        requireUserHandle: session === undefined,
        ...(nativeOrigin === undefined ? {} : { nativeOrigin }),
      });
      return { key, assertion };
    } catch (error) {
      if (error instanceof DomainError) await this.#recordFailure(key, error.detail, origin);
      throw error;
    }
  }

  /**
   * Waits for a login. If the user may not log in, the audit log records the refusal. The event is
   * written after the transaction of the login, because the rollback of that transaction would
   * remove the event.
   */
  async #recordingRefusal<Result>(
    login: Promise<Result>,
    key: AssertingKey,
    origin: AuditOrigin,
  ): Promise<Result> {
    try {
      return await login;
    } catch (error) {
      if (error instanceof DomainError && REFUSALS.includes(error.code)) {
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
    await this.audit.record(this.dataSource.manager, {
      type: 'login_failed',
      actorId: key?.userId ?? null,
      subjectId: key?.userId ?? null,
      orgId: key?.orgId ?? null,
      origin,
      details: { ...(key && detailsOf(key)), reason },
    });
  }

  async #raise(
    tx: EntityManager,
    key: AssertingKey,
    userVerified: boolean,
    { session, clientId }: PresentedAssertion,
    origin: AuditOrigin,
  ): Promise<OpenedSession | undefined> {
    const touched = { ...assuranceOf(userVerified), isFipsKey: isFipsKey(key) };
    const raisesLevel = session?.level !== 'verified' || (userVerified && session.acr !== AAL3);
    if (!raisesLevel) {
      if (await this.sessions.renewAuthTime(tx, session.id, { keyId: key.id, ...touched }))
        return undefined;
      throw sessionEnded();
    }
    if (session && !(await this.sessions.end(tx, session.id))) throw sessionEnded();
    const verified = {
      level: 'verified',
      userId: key.userId,
      authenticatorId: key.id,
      ...touched,
      ...(clientId === undefined ? {} : { clientId }),
    } as const;
    return this.sessions.open(tx, verified, origin);
  }
}

/**
 * Describes a security key for the audit log. The event contains the present name, because the user
 * can rename or remove the key later.
 */
function detailsOf({ id, name, aaguid }: AssertingKey) {
  return { key_id: id, key_name: name, aaguid };
}

function sessionEnded(): DomainError {
  return new DomainError('unauthenticated', 'This session has ended. Sign in again.');
}
