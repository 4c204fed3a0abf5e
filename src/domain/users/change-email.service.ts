import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { TombstonesRepository } from '#domain/organizations/tombstones.repository.js';
import { violatedConstraint } from '#platform/database/statements/faults.js';
import { domainOfEmail } from '#domain/organizations/email-address.js';
import { UsersRepository, type User } from './users.repository.js';

/** What says that an address is somebody else's, as their e-mail or as the name that SCIM gave them. */
const TAKEN: ReadonlySet<string> = new Set([
  'users_email',
  'users_user_name',
  'users_user_name_key',
]);

/**
 * What a change of e-mail entails: whatever was issued under the old one ends with it, in the same transaction: the
 * sessions and the grants, codes and tokens that hang on them, and the certificates that name it.
 */
@Injectable()
export class ChangeEmail {
  constructor(
    private readonly users: UsersRepository,
    private readonly organizations: OrganizationsRepository,
    private readonly revocation: AccessRevocation,
    private readonly tombstones: TombstonesRepository,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Follows the e-mail an identity provider now vouches for, within the domains of the user's organization. A user that SCIM
   * manages keeps theirs. An address that another user has, or that SCIM took from a removed person, is not followed either.
   *
   * @param user their row locked by the caller
   */
  async followUpstream(
    tx: EntityManager,
    user: User,
    email: string,
    origin: AuditOrigin,
  ): Promise<void> {
    const { id: userId } = user;
    if (user.email === email || user.scimManaged || user.orgId === null) return;
    if (!(await this.organizations.ownsDomain(tx, user.orgId, domainOfEmail(email)))) return;
    if (await this.tombstones.forbidsAddress(tx, user.orgId, email, userId)) return;
    if (!(await this.#change(tx, userId, email))) return;
    const cause = { reason: 'e-mail changed', revokedBy: 'upstream' };
    await this.revocation.end(tx, user, 'email-changed', cause);
    await this.audit.record(tx, {
      type: 'email_changed',
      actorId: userId,
      subjectId: userId,
      orgId: user.orgId,
      origin,
      details: { from: user.email, to: email },
    });
  }

  /** Under a savepoint: somebody may be taking the same address in this very moment. */
  async #change(tx: EntityManager, userId: string, email: string): Promise<boolean> {
    try {
      return await tx.transaction((inner) => this.users.changeEmail(inner, userId, email));
    } catch (error) {
      if (TAKEN.has(violatedConstraint(error) ?? '')) return false;
      throw error;
    }
  }
}
