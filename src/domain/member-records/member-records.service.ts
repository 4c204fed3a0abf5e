import { Injectable } from '@nestjs/common';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import { Members, SCOPE_OF_ACT } from '#domain/directory/members.service.js';
import type { Admin, Member } from '#domain/directory/users.repository.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { readDetails, type MemberDetails } from './member-details.repository.js';
import {
  listAdminEvents,
  readFigures,
  type AdminEvent,
  type MemberFigures,
} from './member-figures.repository.js';
import { writeMemberCursor, type MemberQuery } from './member-search.js';
import { searchMembers, type FoundMembers } from './member-search.repository.js';

/** The events on the overview. */
const EVENTS_SHOWN = 10;

/** A page of members; `next` is the cursor of the following page. */
export interface MemberPage extends FoundMembers {
  readonly next: string | null;
}

/** The counts of what each act of an admin would end of a member now. */
export type EndingAccess = Readonly<Record<keyof typeof SCOPE_OF_ACT, RevokedCounts>>;

/** A member with everything that an admin sees. */
export interface MemberRecord extends MemberDetails {
  readonly member: Member;
  readonly ending: EndingAccess;
}

/** Reads what the admins of an organization see of its members. */
@Injectable()
export class MemberRecords {
  constructor(
    private readonly work: TenantWork,
    private readonly members: Members,
    private readonly accessRevocation: AccessRevocation,
  ) {}

  /** Returns the figures and the latest administrative events of an organization. */
  async overview({
    orgId,
  }: Admin): Promise<{ readonly figures: MemberFigures; readonly events: readonly AdminEvent[] }> {
    return this.work.costly(orgId, async (tx) => ({
      figures: await readFigures(tx, orgId),
      events: await listAdminEvents(tx, orgId, EVENTS_SHOWN),
    }));
  }

  /** Returns a page of the members that match a query. */
  async list({ orgId }: Admin, query: MemberQuery): Promise<MemberPage> {
    const found = await this.work.costly(orgId, (tx) => searchMembers(tx, orgId, query));
    const members = found.members.slice(0, query.limit);
    const last = members.at(-1);
    const isLast = found.members.length <= query.limit;
    return {
      members,
      isComplete: found.isComplete,
      next: isLast || !last ? null : writeMemberCursor(last.place),
    };
  }

  /** Returns the record of a member. @throws DomainError not_found */
  async show(admin: Admin, id: string): Promise<MemberRecord> {
    return this.work.costly(admin.orgId, async (tx) => {
      const member = await this.members.find(tx, admin, id);
      const details = await readDetails(tx, member.id);
      const scopes = Object.values(SCOPE_OF_ACT);
      const ending = await this.accessRevocation.count(tx, member, scopes);
      return {
        member,
        ...details,
        ending: {
          deactivate: ending[SCOPE_OF_ACT.deactivate],
          revoke_credentials: ending[SCOPE_OF_ACT.revoke_credentials],
          remove: ending[SCOPE_OF_ACT.remove],
        },
      };
    });
  }
}
