import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { RevocationScope, RevokedCounts } from '#domain/access-revocation/revocable.js';
import type { AuditEvent } from '#domain/audit/audit-event.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { UsersRepository, type User } from './users.repository.js';

/** Who records the act, and as what: the admin API as an act of an admin, SCIM as an operation of its token. */
export interface DeprovisionAudit extends Pick<AuditEvent, 'actorId' | 'origin' | 'details'> {
  readonly type:
    | 'admin_remove_user'
    | 'admin_deactivate'
    | 'admin_activate'
    | 'admin_revoke_credentials'
    | 'scim_operation';
}

/** Whose access ends, and what the revocation of their certificates says of it. */
export interface Deprovisioning {
  readonly userId: string;
  readonly reason: string;
  /** `scim`, or the id of the admin. */
  readonly revokedBy: string;
  readonly audit: DeprovisionAudit;
}

/**
 * The end of somebody's access, whole or not at all, in the caller's transaction. The row of the user is locked before
 * anything else: every issuance takes it FOR SHARE, so one that comes first is found and ended here, and one that comes
 * second finds nothing to issue on.
 *
 *     lock the user -> sessions, and every grant, code and token on them -> certificates -> the user -> audit event
 *
 * Whether this is the caller's to do (their own organization, its last admin) is judged before, by the caller. SCIM may leave
 * an organization without an admin: that is logged, and nobody becomes one by being first.
 */
@Injectable()
export class Deprovision {
  readonly #security = new Logger('security');

  constructor(
    private readonly users: UsersRepository,
    private readonly organizations: OrganizationsRepository,
    private readonly revocation: AccessRevocation,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Removes a person, their keys and the applications they registered. Their certificates stay on record, revoked.
   *
   * @throws DomainError not_found when there is no such user any more
   */
  async remove(tx: EntityManager, deprovisioning: Deprovisioning): Promise<RevokedCounts> {
    const user = await this.#lock(tx, deprovisioning.userId);
    await this.#watchAdmin(tx, user);
    const ended = await this.#end(tx, user, 'account-deleted', deprovisioning);
    await this.users.remove(tx, user.id);
    await this.#record(tx, user, deprovisioning.audit, ended);
    return ended;
  }

  /**
   * Does the same, but keeps the person with their keys and memberships: until they are activated again they can neither
   * sign in nor be issued anything, and their applications cannot act.
   *
   * @throws DomainError not_found when there is no such user any more
   */
  async deactivate(tx: EntityManager, deprovisioning: Deprovisioning): Promise<RevokedCounts> {
    const user = await this.#lock(tx, deprovisioning.userId);
    await this.#watchAdmin(tx, user);
    const ended = await this.#end(tx, user, 'account-deactivated', deprovisioning);
    await this.users.setActive(tx, user.id, false);
    await this.#record(tx, user, deprovisioning.audit, ended);
    return ended;
  }

  /**
   * Takes everything a person could log in with or show: their sessions, certificates and keys. The account stays, and
   * enrolls again after its next sign-in.
   *
   * @throws DomainError not_found when there is no such user any more
   */
  async revokeCredentials(
    tx: EntityManager,
    deprovisioning: Deprovisioning,
  ): Promise<RevokedCounts> {
    const user = await this.#lock(tx, deprovisioning.userId);
    const ended = await this.#end(tx, user, 'credentials-revoked', deprovisioning);
    await this.#record(tx, user, deprovisioning.audit, ended);
    return ended;
  }

  /**
   * Lets a deactivated person in again. What was ended stays ended: they log in anew.
   *
   * @throws DomainError not_found when there is no such user any more
   */
  async activate(
    tx: EntityManager,
    { userId, audit }: Pick<Deprovisioning, 'userId' | 'audit'>,
  ): Promise<void> {
    const user = await this.#lock(tx, userId);
    await this.users.setActive(tx, user.id, true);
    await this.#record(tx, user, audit);
  }

  async #lock(tx: EntityManager, userId: string): Promise<User> {
    const user = await this.users.lock(tx, userId);
    if (!user) throw new DomainError('not_found', 'There is no such user.');
    return user;
  }

  /** Says so when the last admin of an organization goes. */
  async #watchAdmin(tx: EntityManager, user: User): Promise<void> {
    const { id: userId, orgId } = user;
    if (orgId === null || !user.isOrgAdmin || !user.active) return;
    if (await this.organizations.hasOtherAdmin(tx, orgId, userId)) return;
    this.#security.warn({ userId, orgId }, 'an organization is left without an active admin');
  }

  #end(
    tx: EntityManager,
    user: User,
    scope: RevocationScope,
    { reason, revokedBy }: Deprovisioning,
  ): Promise<RevokedCounts> {
    return this.revocation.end(tx, user, scope, { reason, revokedBy });
  }

  async #record(
    tx: EntityManager,
    user: User,
    { details, ...audit }: DeprovisionAudit,
    ended: RevokedCounts = {},
  ): Promise<void> {
    const about = { subjectId: user.id, orgId: user.orgId };
    await this.audit.record(tx, { ...audit, ...about, details: { ...details, ...ended } });
  }
}
