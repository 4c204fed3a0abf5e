import { Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { ManageMembers } from '#domain/users/manage-members.service.js';
import { Access, CurrentSession } from '#platform/http/access/access.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { ADMIN_READS, ADMIN_WRITES, adminOf } from './admin.js';
import {
  MEMBER_ID,
  MEMBER_PAGE,
  memberJson,
  type MemberJson,
  type MemberPageQuery,
} from './members.schemas.js';

/** `/api/v1/org/members`: the people of the organization, and what its admins do to them. */
@Controller('api/v1/org/members')
@Access(ADMIN_WRITES)
export class MembersController {
  constructor(private readonly members: ManageMembers) {}

  @Get()
  @Access(ADMIN_READS)
  async list(
    @CurrentSession() session: VerifiedSession,
    @Query({ schema: MEMBER_PAGE }) { after, limit }: MemberPageQuery,
  ): Promise<{ readonly members: MemberJson[]; readonly next: string | null }> {
    const { members, next } = await this.members.list(adminOf(session), after, limit);
    return { members: members.map(memberJson), next };
  }

  @Post(':id/promote')
  @HttpCode(200)
  async promote(
    @CurrentSession() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<MemberJson> {
    return memberJson(await this.members.promote({ admin: adminOf(session), memberId, origin }));
  }

  @Post(':id/demote')
  @HttpCode(200)
  async demote(
    @CurrentSession() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<MemberJson> {
    return memberJson(await this.members.demote({ admin: adminOf(session), memberId, origin }));
  }

  @Post(':id/deactivate')
  @HttpCode(200)
  async deactivate(
    @CurrentSession() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<MemberJson> {
    return memberJson(await this.members.deactivate({ admin: adminOf(session), memberId, origin }));
  }

  @Post(':id/activate')
  @HttpCode(200)
  async activate(
    @CurrentSession() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<MemberJson> {
    return memberJson(await this.members.activate({ admin: adminOf(session), memberId, origin }));
  }

  @Post(':id/revoke-credentials')
  @HttpCode(200)
  async revokeCredentials(
    @CurrentSession() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<MemberJson> {
    const act = { admin: adminOf(session), memberId, origin };
    return memberJson(await this.members.revokeCredentials(act));
  }

  @Post(':id/remove')
  @HttpCode(204)
  async remove(
    @CurrentSession() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.members.remove({ admin: adminOf(session), memberId, origin });
  }
}
