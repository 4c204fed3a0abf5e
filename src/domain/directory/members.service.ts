import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { validate as isUuid } from 'uuid';
import type { RevocationScope, RevokedCounts } from '#domain/access-revocation/revocable.js';
import type { AuditType } from '#domain/audit/audit-event.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { AccountAudit, LockedAccount } from './account.js';
import { RecordEnds, type EndKind, type RecordEnd } from './record-ends.service.js';
import { UserDirectory } from './user-directory.service.js';
import { UsersRepository, type Admin, type Member } from './users.repository.js';

/** An act of an admin on a member, as the request asks for it. */
export interface MemberAct {
  readonly admin: Admin;
  /** The id from the request. It is not checked, and may belong to no member. */
  readonly memberId: string;
  readonly origin: AuditOrigin;
  /**
   * A function that throws, and so refuses the act, if the member is no longer in the state that
   * the admin saw.
   */
  readonly check?: ((member: Member) => void) | undefined;
}

const REVOKED = 'credentials revoked by an admin';

/** A member after an act of an admin, and the counts of what the act ended. */
export interface MemberAfterEnd {
  readonly member: Member;
  readonly ended: RevokedCounts;
}

/**
 * For each act of an admin that ends access, the revocation event, which decides which kinds of
 * access end.
 */
export const SCOPE_OF_ACT = {
  deactivate: 'account-deactivated',
  revoke_credentials: 'credentials-revoked',
  remove: 'account-deleted',
} as const satisfies Record<string, RevocationScope>;

/**
 * The members of an organization, and the acts of its admins on them. Each act is a transaction
 * that first locks the admin and the member, in the order of their ids, and then checks both. So if
 * two admins take the role from each other at the same time, the second act is refused. An admin
 * cannot act on the own account, so an organization keeps its last admin.
 */
@Injectable()
export class Members {
  constructor(
    private readonly work: TenantWork,
    private readonly users: UsersRepository,
    private readonly organizations: OrganizationsRepository,
    private readonly directory: UserDirectory,
    private readonly audit: AuditLog,
    private readonly ends: RecordEnds,
  ) {}

  /**
   * Finds a member of the admin's organization.
   *
   * @throws DomainError not_found, also for an id that is not a UUID
   */
  async find(tx: EntityManager, { orgId }: Admin, id: string): Promise<Member> {
    if (!isUuid(id)) throw noMember();
    return this.#find(tx, orgId, id);
  }

  /**
   * Makes a member an admin.
   *
   * @throws DomainError admin_required, not_found, own_account
   */
  promote(act: MemberAct): Promise<Member> {
    return this.#change(act, false, async (tx, { id, email }) => {
      const { orgId } = act.admin;
      if (!(await this.users.setAdmin(tx, { id, orgId }, true))) return;
      await this.audit.record(tx, {
        ...auditOf(act, { email }, 'admin_promote'),
        subjectId: id,
        orgId,
      });
    });
  }

  /**
   * Takes the role of admin from a member. The API tokens that the member made lose the right to
   * rotate SCIM tokens, and end within some days.
   *
   * @throws DomainError admin_required, not_found, own_account, last_admin
   */
  demote(act: MemberAct): Promise<Member> {
    return this.#change(act, true, async (tx, { id, email }) => {
      const { id: adminId, orgId } = act.admin;
      const cause = { reason: 'demoted by an admin', revokedBy: adminId };
      const ended = await this.directory.demote(tx, { id, orgId }, cause);
      if (!ended) return;
      const { details, ...audit } = auditOf(act, { email }, 'admin_demote');
      await this.audit.record(tx, {
        ...audit,
        subjectId: id,
        orgId,
        details: { ...details, ...ended },
        acts: [{ kind: 'admin_demoted', userId: id, orgId }],
      });
    });
  }

  /**
   * Ends the access of a member and keeps the account. If the member is a SCIM record, the members
   * who signed in with an e-mail address of the record (its twins) lose access, too. SCIM records
   * that are linked to the member, because they share an address, are deactivated.
   *
   * @throws DomainError admin_required, not_found, own_account, last_admin
   */
  deactivate(act: MemberAct): Promise<MemberAfterEnd> {
    return this.work.transact(act.admin.orgId, async (tx) => {
      const { member, ended } = await this.#endRecord(tx, act, 'deactivate');
      return { member: await this.#find(tx, act.admin.orgId, member.id), ended };
    });
  }

  /**
   * Lets a deactivated member sign in again, together with the twins that were deactivated with the
   * member. A twin is a member who signed in with an e-mail address of this SCIM record.
   *
   * @throws DomainError admin_required, not_found, own_account
   */
  activate(act: MemberAct): Promise<Member> {
    return this.work.transact(act.admin.orgId, async (tx) => {
      await this.organizations.lockDirectory(tx, act.admin.orgId);
      const revived = isUuid(act.memberId) ? await this.ends.revived(tx, act.memberId) : [];
      const member = await this.#lock(tx, act, false, revived);
      if (!member.active) {
        await this.ends.activate(tx, revived, member.id, ({ email }, more) => {
          const { details, ...audit } = auditOf(act, { email }, 'admin_activate');
          return { ...audit, details: { ...details, ...more } };
        });
      }
      return this.#find(tx, act.admin.orgId, member.id);
    });
  }

  /**
   * Ends the keys, sessions and certificates of a member, who must then sign in and enroll a key
   * again.
   *
   * @throws DomainError admin_required, not_found, own_account
   */
  async revokeCredentials(act: MemberAct): Promise<MemberAfterEnd> {
    return this.work.transact(act.admin.orgId, async (tx) => {
      const member = await this.#lock(tx, act, false);
      const ended = await this.directory.revokeCredentials(tx, accountOf(act, member), {
        reason: REVOKED,
        revokedBy: act.admin.id,
        audit: auditOf(act, member, 'admin_revoke_credentials'),
      });
      return { member: await this.#find(tx, act.admin.orgId, member.id), ended };
    });
  }

  /**
   * Removes a member, together with the twins of the member (members who signed in with an e-mail
   * address of this SCIM record). The addresses and identities of the removed users cannot sign in
   * until an admin readmits them.
   *
   * @throws DomainError admin_required, not_found, own_account, last_admin
   */
  async remove(act: MemberAct): Promise<RevokedCounts> {
    return this.work.transact(act.admin.orgId, async (tx) => {
      const { ended } = await this.#endRecord(tx, act, 'remove');
      return ended;
    });
  }

  /**
   * Locks the admin of an act, so that the admin keeps the role until the transaction ends. Other
   * rows are locked after users, so that transactions do not deadlock. Only the lock of a whole
   * directory, domain or list of providers comes earlier.
   *
   * @throws DomainError admin_required for a demoted admin, or a session that has ended since the
   *   request came
   */
  async holdAdmin(tx: EntityManager, admin: Admin): Promise<void> {
    if (!(await this.users.lockAdmin(tx, admin))) throw adminRequired();
  }

  /**
   * Locks the user and the session of a request, so that neither ends until the transaction does.
   * It is for acts that are open to users who are no admins. Returns false for a deactivated user,
   * and for a session that has ended since the request came.
   */
  isSessionHeld(tx: EntityManager, holder: Pick<Admin, 'id' | 'sessionId'>): Promise<boolean> {
    return this.users.lockSession(tx, holder);
  }

  /**
   * Does the same as `holdAdmin`, but returns false instead of throwing an error. It is for acts
   * that are also open to some users who are no admins, such as the owner of an application.
   */
  isAdminHeld(tx: EntityManager, admin: Admin): Promise<boolean> {
    return this.users.lockAdmin(tx, admin);
  }

  /**
   * Checks that a user is still an active admin, and that the session of the request is still
   * valid. It is for reads; a read in several batches calls it before each batch. It locks nothing,
   * so an act that changes something calls {@link holdAdmin} instead.
   *
   * @throws DomainError admin_required
   */
  async checkAdmin(tx: EntityManager, admin: Admin): Promise<void> {
    if (!(await this.users.isActingAdmin(tx, admin))) throw adminRequired();
  }

  /**
   * Locks the admin and the member of an act until the transaction ends, and checks both. An act on
   * the own account is refused.
   *
   * @param others further users that the act changes, which are locked in the same order
   * @param kept further users that the act does not change but refers to, which are locked, too
   * @throws DomainError admin_required, not_found, own_account
   */
  async lockForAct(
    tx: EntityManager,
    act: MemberAct,
    others: readonly string[] = [],
    kept: readonly string[] = [],
  ): Promise<Member> {
    const member = await this.#lock(tx, act, false, [...others, ...kept]);
    if (others.includes(act.admin.id)) throw ownAccount();
    return member;
  }

  /**
   * Removes or deactivates a member, and all users who lose their access for that reason. The
   * rows of all these users are locked first. If the acting admin is one of them, the request is
   * refused, as if the admin had named their own account.
   */
  async #endRecord(
    tx: EntityManager,
    act: MemberAct,
    kind: EndKind,
  ): Promise<{ readonly member: Member; readonly ended: RevokedCounts }> {
    await this.organizations.lockDirectory(tx, act.admin.orgId);
    const reached = isUuid(act.memberId) ? await this.ends.reach(tx, act.memberId, kind) : [];
    const ids = reached.map(({ id }) => id);
    const member = await this.#lock(tx, act, true, ids);
    if (ids.includes(act.admin.id)) throw ownAccount();
    return { member, ended: await this.ends.end(tx, reached, endOf(act)) };
  }

  /**
   * Runs a change of a member after the admin and the member are locked. A change without effect
   * records no audit event.
   */
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

  /**
   * Locks the admin, the member and further users in the order of their ids, and checks the act.
   *
   * @param takesAdmin true if the act would take an admin from the organization
   * @param others further users that the act changes
   */
  async #lock(
    tx: EntityManager,
    { admin, memberId, check }: MemberAct,
    takesAdmin: boolean,
    others: readonly string[] = [],
  ): Promise<Member> {
    if (!isUuid(memberId)) throw noMember();
    await this.users.lockMembers(tx, admin.orgId, [admin.id, memberId, ...others]);
    await this.holdAdmin(tx, admin);
    const member = await this.#find(tx, admin.orgId, memberId);
    if (member.id !== admin.id) {
      check?.(member);
      return member;
    }
    if (takesAdmin && !(await this.organizations.hasOtherAdmin(tx, admin.orgId, admin.id))) {
      throw new DomainError('last_admin', 'You are the last admin of your organization.');
    }
    throw ownAccount();
  }

  async #find(tx: EntityManager, orgId: string, id: string): Promise<Member> {
    const member = await this.users.findMember(tx, orgId, id);
    if (!member) throw noMember();
    return member;
  }
}

function accountOf({ admin }: MemberAct, { id, isOrgAdmin, active }: Member): LockedAccount {
  return { id, orgId: admin.orgId, isOrgAdmin, active };
}

/** The type of audit event for each act that removes or deactivates members. */
const END_TYPES = {
  deactivate: 'admin_deactivate',
  remove: 'admin_remove_user',
} as const satisfies Record<EndKind, AccountAudit['type']>;

function endOf(act: MemberAct): RecordEnd {
  return {
    reason: { deactivate: 'deactivated by an admin', remove: 'removed by an admin' },
    revokedBy: act.admin.id,
    byAdmin: true,
    auditOf: ({ email }, kind, more) => {
      const { details, ...audit } = auditOf(act, { email }, END_TYPES[kind]);
      return { ...audit, details: { ...details, ...more } };
    },
  };
}

/**
 * Returns the audit event of an act. It contains the e-mail address, because the log keeps the
 * event longer than the account exists.
 */
function auditOf<Type extends AuditType>(
  { admin, origin }: MemberAct,
  { email }: Pick<Member, 'email'>,
  type: Type,
) {
  return { type, actorId: admin.id, origin, details: { email } };
}

/** Returns the error for an admin who tries to act on the own account. */
function ownAccount(): DomainError {
  return new DomainError('own_account', 'Ask another admin: you cannot act on your own account.');
}

/** Returns the error for an id that belongs to no member of the organization. */
export function noMember(): DomainError {
  return new DomainError('not_found', 'Your organization has no such member.');
}

/**
 * The part of a session that tells in which organization its user acts. A security key has verified
 * the session.
 */
interface SessionOfUser {
  readonly id: string;
  readonly user: { readonly id: string; readonly orgId: string | null };
}

/**
 * Returns the admin of a session that a route with the scope `svc:admin` admitted.
 *
 * @throws DomainError admin_required for a user without an organization, which the access rule of
 *   the route has already refused
 */
export function adminOf({ id: sessionId, user }: SessionOfUser): Admin {
  const { id, orgId } = user;
  if (orgId === null) throw adminRequired();
  return { id, orgId, sessionId };
}

/** Returns the error for a user who is not an active admin of the organization. */
export function adminRequired(): DomainError {
  return new DomainError('admin_required', 'This is for the admins of an organization.');
}
