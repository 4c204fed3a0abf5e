import { Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { Members, adminOf } from '#domain/directory/members.service.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import {
  MEMBER_ID,
  MEMBER_PAGE,
  memberJson,
  type MemberJson,
  type MemberPageQuery,
} from './members.schemas.js';

/** `/api/v1/org/members`: the members of the organization, and the acts of its admins on them. */
@Controller('api/v1/org/members')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class MembersController {
  constructor(private readonly members: Members) {}

  @Get()
  @Route({ auth: ADMIN_READS, summary: 'Lists the members' })
  async list(
    @Caller() session: VerifiedSession,
    @Query({ schema: MEMBER_PAGE }) { after, limit }: MemberPageQuery,
  ): Promise<{ readonly members: MemberJson[]; readonly next: string | null }> {
    const { members, next } = await this.members.list(adminOf(session), after, limit);
    return { members: members.map(memberJson), next };
  }

  @Post(':id/promote')
  @Route({ summary: 'Makes a member an admin' })
  @HttpCode(200)
  async promote(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<MemberJson> {
    return memberJson(await this.members.promote({ admin: adminOf(session), memberId, origin }));
  }

  @Post(':id/demote')
  @Route({ summary: 'Makes an admin a plain member' })
  @HttpCode(200)
  async demote(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<MemberJson> {
    return memberJson(await this.members.demote({ admin: adminOf(session), memberId, origin }));
  }

  @Post(':id/deactivate')
  @Route({ summary: 'Deactivates a member' })
  @HttpCode(200)
  async deactivate(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<MemberJson> {
    return memberJson(await this.members.deactivate({ admin: adminOf(session), memberId, origin }));
  }

  @Post(':id/activate')
  @Route({ summary: 'Activates a member' })
  @HttpCode(200)
  async activate(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<MemberJson> {
    return memberJson(await this.members.activate({ admin: adminOf(session), memberId, origin }));
  }

  @Post(':id/revoke-credentials')
  @Route({ summary: 'Revokes all credentials of a member' })
  @HttpCode(200)
  async revokeCredentials(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<MemberJson> {
    const act = { admin: adminOf(session), memberId, origin };
    return memberJson(await this.members.revokeCredentials(act));
  }

  @Post(':id/remove')
  @Route({ summary: 'Removes a member' })
  @HttpCode(204)
  async remove(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.members.remove({ admin: adminOf(session), memberId, origin });
  }
}
