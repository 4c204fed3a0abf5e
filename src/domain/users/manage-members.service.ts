import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { validate as isUuid } from 'uuid';
import type { AuditType } from '#domain/audit/audit-event.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { ActingAdmin, type Admin } from './acting-admin.service.js';
import { Deprovision, type DeprovisionAudit, type Deprovisioning } from './deprovision.service.js';
import { MembersRepository, type Member } from './members.repository.js';

/** What an admin does to a member: by whom, to whom, from where. */
export interface MemberAct {
  readonly admin: Admin;
  /** As the request names them: of any form, and perhaps nobody. */
  readonly memberId: string;
  readonly origin: AuditOrigin;
}

/** A page of members; `next` is where the one after it begins. */
export interface MemberPage {
  readonly members: readonly Member[];
  readonly next: string | null;
}

/**
 * What the admins of an organization do to its members. Each act is a transaction that first locks the admin and the
 * member, in the order of their ids, and judges both anew: of two admins who demote each other the second is none any
 * more. Nobody acts on their own account; so whoever acts is an active admin who stays one, and none takes the last.
 */
@Injectable()
export class ManageMembers {
  constructor(
    private readonly work: TenantWork,
    private readonly admins: ActingAdmin,
    private readonly members: MembersRepository,
    private readonly organizations: OrganizationsRepository,
    private readonly deprovision: Deprovision,
    private readonly audit: AuditLog,
  ) {}

  /** A page of the members, in the order in which they came. */
  async list({ orgId }: Admin, after: string, limit: number): Promise<MemberPage> {
    const page = { after, limit: limit + 1 };
    const found = await this.work.costly(orgId, (tx) => this.members.list(tx, orgId, page));
    const members = found.slice(0, limit);
    return { members, next: found.length > limit ? (members.at(-1)?.id ?? null) : null };
  }

  /** Makes a member an admin. @throws DomainError admin_required, not_found, own_account */
  promote(act: MemberAct): Promise<Member> {
    return this.#setAdmin(act, true);
  }

  /** Makes a member an admin no longer. @throws DomainError admin_required, not_found, own_account, last_admin */
  demote(act: MemberAct): Promise<Member> {
    return this.#setAdmin(act, false);
  }

  /** Ends a member's access, and keeps them. @throws DomainError admin_required, not_found, own_account, last_admin */
  deactivate(act: MemberAct): Promise<Member> {
    return this.#change(act, true, async (tx, member) => {
      const reason = 'deactivated by an admin';
      await this.deprovision.deactivate(tx, endOf(act, member, 'admin_deactivate', reason));
    });
  }

  /** Lets a deactivated member in again. @throws DomainError admin_required, not_found, own_account */
  activate(act: MemberAct): Promise<Member> {
    return this.#change(act, false, async (tx, member) => {
      if (member.active) return;
      const audit = auditOf(act, member, 'admin_activate');
      await this.deprovision.activate(tx, { userId: member.id, audit });
    });
  }

  /**
   * Takes a member's keys, sessions and certificates: they sign in and enroll anew.
   *
   * @throws DomainError admin_required, not_found, own_account
   */
  revokeCredentials(act: MemberAct): Promise<Member> {
    return this.#change(act, false, async (tx, member) => {
      const reason = 'credentials revoked by an admin';
      const end = endOf(act, member, 'admin_revoke_credentials', reason);
      await this.deprovision.revokeCredentials(tx, end);
    });
  }

  /** Removes a member. @throws DomainError admin_required, not_found, own_account, last_admin */
  async remove(act: MemberAct): Promise<void> {
    await this.work.transact(act.admin.orgId, async (tx) => {
      const member = await this.#lock(tx, act, true);
      const reason = 'removed by an admin';
      await this.deprovision.remove(tx, endOf(act, member, 'admin_remove_user', reason));
    });
  }

  #setAdmin(act: MemberAct, isOrgAdmin: boolean): Promise<Member> {
    return this.#change(act, !isOrgAdmin, async (tx, member) => {
      const { orgId } = act.admin;
      if (!(await this.members.setAdmin(tx, orgId, member.id, isOrgAdmin))) return;
      await this.audit.record(tx, {
        ...auditOf(act, member, isOrgAdmin ? 'admin_promote' : 'admin_demote'),
        subjectId: member.id,
        orgId,
      });
    });
  }

  /** Does something to a member; what changes nothing is no event. */
  async #change(
    act: MemberAct,
    takesAdmin: boolean,
    change: (tx: EntityManager, member: Member) => Promise<void>,
  ): Promise<Member> {
    return this.work.transact(act.admin.orgId, async (tx) => {
      const member = await this.#lock(tx, act, takesAdmin);
      await change(tx, member);
      return this.#find(tx, act.admin.orgId, member.id);
    });
  }

  /** @param takesAdmin whether the act would take an admin from the organization */
  async #lock(
    tx: EntityManager,
    { admin, memberId }: MemberAct,
    takesAdmin: boolean,
  ): Promise<Member> {
    if (!isUuid(memberId)) throw notFound();
    await this.members.lock(tx, admin.orgId, [admin.id, memberId]);
    await this.admins.hold(tx, admin);
    const member = await this.#find(tx, admin.orgId, memberId);
    if (member.id !== admin.id) return member;
    if (takesAdmin && !(await this.organizations.hasOtherAdmin(tx, admin.orgId, admin.id))) {
      throw new DomainError('last_admin', 'You are the last admin of your organization.');
    }
    throw new DomainError('own_account', 'Ask another admin: nobody acts on their own account.');
  }

  async #find(tx: EntityManager, orgId: string, id: string): Promise<Member> {
    const member = await this.members.find(tx, orgId, id);
    if (!member) throw notFound();
    return member;
  }
}

function endOf(
  act: MemberAct,
  member: Member,
  type: DeprovisionAudit['type'],
  reason: string,
): Deprovisioning {
  return {
    userId: member.id,
    reason,
    revokedBy: act.admin.id,
    audit: auditOf(act, member, type),
  };
}

/** With the e-mail: the row outlives the account. */
function auditOf<Type extends AuditType>(
  { admin, origin }: MemberAct,
  { email }: Member,
  type: Type,
) {
  return { type, actorId: admin.id, origin, details: { email } };
}

function notFound(): DomainError {
  return new DomainError('not_found', 'Your organization has no such member.');
}
