import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import {
  AuthenticatorsRepository,
  type Authenticator,
} from '#domain/authenticators/authenticators.repository.js';
import type { VerifiedRegistration } from '#domain/authenticators/webauthn-ceremonies.service.js';
import {
  assuranceOf,
  type BootstrapSession,
  type PendingSession,
} from '#domain/sessions/session.js';
import { Sessions, type OpenedSession } from '#domain/sessions/sessions.service.js';
import { violatedConstraint } from '#platform/database/statements/faults.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { alreadyEnrolled } from './enrollment-policy.service.js';
import { MakePerson } from './make-person.service.js';

/** The first key of whom, of which session, under which name. */
export interface Enrollment {
  readonly session: BootstrapSession | PendingSession;
  readonly registration: VerifiedRegistration;
  readonly keyName: string;
  /** The user handle the key was given: the id of a person made here. */
  readonly newUserId: string;
}

/** An enrolled first key, and the session that follows: verified when the key verified its user, else bootstrap. */
export interface Enrolled {
  readonly key: Authenticator;
  readonly session: OpenedSession;
  readonly level: 'bootstrap' | 'verified';
}

/**
 * Enrolling a person's first key: in one transaction the bootstrap session ends, the person is made where nobody was
 * yet, the key is added if they have none, and the next session opens. All of it or nothing.
 */
@Injectable()
export class Enroll {
  constructor(
    private readonly dataSource: DataSource,
    private readonly people: MakePerson,
    private readonly keys: AuthenticatorsRepository,
    private readonly sessions: Sessions,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Enrolls the key of a verified registration.
   *
   * @throws DomainError already_enrolled, enrollment_refused, credential_exists, account_inactive, unauthenticated
   */
  async enroll(enrollment: Enrollment, origin: AuditOrigin): Promise<Enrolled> {
    const { session, registration, keyName, newUserId } = enrollment;
    try {
      return await this.dataSource.transaction(async (tx) => {
        const person = await this.people.lockOrMake(tx, session, newUserId, origin);
        const key = await this.keys.addFirst(tx, person.id, registration, keyName);
        if (!key) throw alreadyEnrolled();
        const { attestation, aaguid, userVerified } = registration;
        await this.audit.record(tx, {
          type: 'enrollment',
          actorId: person.id,
          subjectId: person.id,
          orgId: person.orgId,
          origin,
          details: { key_id: key.id, attestation, aaguid, user_verified: userVerified },
        });
        return { key, ...(await this.#next(tx, person.id, key.id, userVerified, origin)) };
      });
    } catch (error) {
      if (violatedConstraint(error) === 'authenticators_credential_id_key') {
        throw new DomainError('credential_exists', 'This key is registered already.', {
          cause: error,
        });
      }
      throw error;
    }
  }

  /** Enrollment with user verification counts as the first login; without it the login step follows. */
  async #next(
    tx: EntityManager,
    userId: string,
    authenticatorId: string,
    userVerified: boolean,
    origin: AuditOrigin,
  ): Promise<Pick<Enrolled, 'session' | 'level'>> {
    if (!userVerified) {
      const session = await this.sessions.open(tx, { level: 'bootstrap', userId }, origin);
      return { session, level: 'bootstrap' };
    }
    const proven = { userId, authenticatorId, authTime: new Date(), ...assuranceOf(true) };
    const session = await this.sessions.open(tx, { level: 'verified', ...proven }, origin);
    return { session, level: 'verified' };
  }
}
