import { Injectable } from '@nestjs/common';
import { validate as isUuid } from 'uuid';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { Members, noMember, type MemberAct } from '#domain/directory/members.service.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { decidePass, hashOfPass, type DemandedPass } from './enrollment-pass.js';
import { EnrollmentPassesRepository } from './enrollment-passes.repository.js';
import { givePass, type Renewal } from './give-pass.js';

/**
 * Lets admins give and withdraw the re-enrollment passes of members, and decide that a member needs
 * no pass. It also checks a pass before the ceremony of an enrollment.
 */
@Injectable()
export class EnrollmentPasses {
  private readonly passes = new EnrollmentPassesRepository();

  constructor(
    private readonly work: TenantWork,
    private readonly manager: EntityManager,
    private readonly members: Members,
    private readonly directory: UserDirectory,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Gives a member a re-enrollment pass, and ends the credentials of the member, because another
   * person may have the lost key.
   *
   * @throws DomainError admin_required, not_found, own_account, account_inactive
   */
  give(act: MemberAct): Promise<Renewal> {
    const { admin, origin } = act;
    return this.work.transact(admin.orgId, async (tx) => {
      const { email, ...member } = await this.members.lockForAct(tx, act);
      const account = { ...member, orgId: admin.orgId };
      const audit = {
        type: 'enrollment_pass_created',
        actorId: admin.id,
        origin,
        details: { email },
      } as const;
      const reason = 'an admin gave a re-enrollment pass';
      const end = { reason, revokedBy: admin.id, audit };
      const { directory, passes } = this;
      return givePass(tx, { directory, passes }, account, end, admin.id);
    });
  }

  /**
   * Withdraws the re-enrollment pass of a member. The member cannot enroll a key until an admin or
   * the operator gives another pass, or an admin decides that the member needs none.
   *
   * @throws DomainError admin_required, not_found (also without a valid pass), own_account
   */
  async withdraw(act: MemberAct): Promise<void> {
    const { admin, origin } = act;
    await this.work.transact(admin.orgId, async (tx) => {
      const { id, email } = await this.members.lockForAct(tx, act);
      if (!(await this.passes.withdraw(tx, id))) {
        throw new DomainError('not_found', 'This member has no valid pass.');
      }
      await this.audit.record(tx, {
        type: 'enrollment_pass_revoked',
        actorId: admin.id,
        subjectId: id,
        orgId: admin.orgId,
        origin,
        details: { email },
      });
    });
  }

  /**
   * Lets a member enroll a key without a re-enrollment pass, after a sign-in at the identity
   * provider. A pass that is still valid is not accepted any more.
   *
   * @throws DomainError admin_required, not_found (also if the member needs no pass), own_account
   */
  async lift(act: MemberAct): Promise<void> {
    const { admin, origin } = act;
    await this.work.transact(admin.orgId, async (tx) => {
      const { id, email } = await this.members.lockForAct(tx, act);
      if (!(await this.passes.lift(tx, id))) {
        throw new DomainError('not_found', 'No pass is demanded of this member.');
      }
      await this.audit.record(tx, {
        type: 'enrollment_pass_waived',
        actorId: admin.id,
        subjectId: id,
        orgId: admin.orgId,
        origin,
        details: { email },
      });
    });
  }

  /**
   * Finds the pass that the next enrollment of a member needs; undefined if no pass is needed.
   *
   * @throws DomainError not_found for an id that is not a member of the organization
   */
  async ofMember({ orgId }: Admin, memberId: string): Promise<DemandedPass | undefined> {
    const found = isUuid(memberId)
      ? await this.passes.findOfMember(this.manager, orgId, memberId)
      : undefined;
    if (!found) throw noMember();
    return found.pass;
  }

  /** Returns true if the next enrollment of a user needs a re-enrollment pass. */
  async isDemanded(userId: string): Promise<boolean> {
    return (await this.passes.find(this.manager, userId)) !== undefined;
  }

  /**
   * Checks a re-enrollment pass before the ceremony, without consuming it. A pass belongs to an
   * existing user. So if the user has no account yet, every pass is refused.
   *
   * @returns the hash, for the check that consumes the pass; undefined without a pass
   * @throws DomainError enrollment_pass_required, enrollment_pass_invalid
   */
  async check(
    userId: string | undefined,
    presented: string | undefined,
  ): Promise<Buffer | undefined> {
    const hash = presented === undefined ? undefined : hashOfPass(presented);
    const none = { isDemanded: false, isPresented: hash !== undefined, fits: false };
    const facts =
      userId === undefined
        ? none
        : await this.passes.compare(this.manager, { userId, orgId: null, hash });
    decidePass(facts);
    return hash;
  }
}
