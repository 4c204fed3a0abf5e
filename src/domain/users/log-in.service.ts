import { Injectable, Logger } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import {
  AuthenticatorsRepository,
  type AssertingKey,
} from '#domain/authenticators/authenticators.repository.js';
import { AAL3, assuranceOf } from '#domain/sessions/session.js';
import { Sessions, type OpenedSession } from '#domain/sessions/sessions.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Assertions, type PresentedAssertion } from './assertions.service.js';
import { ClaimAdmin } from './claim-admin.service.js';
import { UsersRepository } from './users.repository.js';

/** An assertion to log in with, and for whom. */
export interface Login extends PresentedAssertion {
  /** The client that gets a session of its own, beside that of any browser. */
  readonly clientId?: string;
}

/** Logging in with a security key: the second level of session, which may be issued credentials. */
@Injectable()
export class LogIn {
  readonly #security = new Logger('security');

  constructor(
    private readonly dataSource: DataSource,
    private readonly users: UsersRepository,
    private readonly keys: AuthenticatorsRepository,
    private readonly sessions: Sessions,
    private readonly audit: AuditLog,
    private readonly claimAdmin: ClaimAdmin,
    private readonly assertions: Assertions,
  ) {}

  /**
   * Raises the session to verified, or opens a verified one. A change of level mints a new token and ends the old
   * session; an assertion that changes no level renews `auth_time` alone and keeps the token.
   *
   * @returns the new session, or undefined where the present one stays
   * @throws DomainError assertion_rejected (audited), account_inactive
   */
  async logIn(login: Login, origin: AuditOrigin): Promise<OpenedSession | undefined> {
    const { key, assertion } = await this.assertions.verify(login, origin);
    // A key that was enrolled as one that cannot verify its user asserts presence, whatever it says of itself.
    const userVerified = assertion.userVerified && key.userVerification;
    const outcome = await this.dataSource.transaction(async (tx) => {
      const user = await this.users.lock(tx, key.userId);
      if (!user?.active) {
        throw new DomainError('account_inactive', 'This account is deactivated.');
      }
      const about = { actorId: user.id, subjectId: user.id, orgId: user.orgId, origin };
      const counter = await this.keys.advanceCounter(tx, key.id, assertion.signCount);
      if (counter === 'gone') {
        throw new DomainError(
          'assertion_rejected',
          'This security key is not registered any more.',
        );
      }
      if (counter === 'stuck') {
        const details = { key_id: key.id, reason: 'signature counter did not grow' };
        await this.audit.record(tx, { type: 'login_failed', ...about, details });
        return counter;
      }
      const { orgId, email } = user;
      if (orgId !== null && email !== null) {
        await this.claimAdmin.forMember(tx, { id: user.id, orgId, email }, origin);
      }
      const session = await this.#raise(tx, key, userVerified, login, origin);
      const details = { key_id: key.id, user_verified: userVerified };
      await this.audit.record(tx, { type: 'login_success', ...about, details });
      return session;
    });
    // Thrown outside the transaction, which keeps the audit row.
    if (outcome === 'stuck') {
      this.#security.warn({ keyId: key.id, userId: key.userId }, 'signature counter did not grow');
      throw new DomainError(
        'assertion_rejected',
        'The signature counter of this key did not grow: it may have been copied.',
      );
    }
    return outcome;
  }

  async #raise(
    tx: EntityManager,
    key: AssertingKey,
    userVerified: boolean,
    { session, clientId }: Login,
    origin: AuditOrigin,
  ): Promise<OpenedSession | undefined> {
    const authTime = new Date();
    const raisesLevel = session?.level !== 'verified' || (userVerified && session.acr !== AAL3);
    if (!raisesLevel) {
      if (await this.sessions.renewAuthTime(tx, session.id, authTime)) return undefined;
      throw ended();
    }
    if (session && !(await this.sessions.end(tx, session.id))) throw ended();
    const verified = {
      level: 'verified',
      userId: key.userId,
      authenticatorId: key.id,
      authTime,
      ...assuranceOf(userVerified),
      ...(clientId === undefined ? {} : { clientId }),
    } as const;
    return this.sessions.open(tx, verified, origin);
  }
}

function ended(): DomainError {
  return new DomainError('unauthenticated', 'This session has ended. Sign in again.');
}
