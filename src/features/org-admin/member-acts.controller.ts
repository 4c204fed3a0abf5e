import { Controller, Delete, Headers, HttpCode, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { Members, adminOf } from '#domain/directory/members.service.js';
import { MemberAccess } from '#domain/member-access/member-access.service.js';
import { ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { sendDeleted } from '#platform/http/request/preference.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { IfMatch, type MemberCheck } from './member-act.js';
import {
  ENDED_MEMBER_JSON,
  endedMemberJson,
  KEY_OF_MEMBER,
  MEMBER_ID,
  MEMBER_JSON,
  memberJson,
  ONLY_ENDED_JSON,
  SESSION_OF_MEMBER,
  type EndedMemberJson,
  type MemberJson,
  type OnlyEndedJson,
} from './members.schemas.js';

/**
 * The acts of admins on the members of the organization. With `If-Match`, an act on a member that has changed meanwhile is refused.
 */
@Controller('api/v1/org/members')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class MemberActsController {
  constructor(
    private readonly members: Members,
    private readonly access: MemberAccess,
  ) {}

  @Post(':id/promote')
  @Route({
    summary: 'Makes a member an admin',
    answers: { 200: MEMBER_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed'],
  })
  @HttpCode(200)
  async promote(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
    @IfMatch() check: MemberCheck | undefined,
  ): Promise<MemberJson> {
    const act = { admin: adminOf(session), memberId, origin, check };
    return memberJson(await this.members.promote(act));
  }

  @Post(':id/demote')
  @Route({
    summary: 'Makes an admin a plain member',
    answers: { 200: MEMBER_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed', 'last_admin'],
  })
  @HttpCode(200)
  async demote(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
    @IfMatch() check: MemberCheck | undefined,
  ): Promise<MemberJson> {
    const act = { admin: adminOf(session), memberId, origin, check };
    return memberJson(await this.members.demote(act));
  }

  @Post(':id/activate')
  @Route({
    summary: 'Activates a member',
    answers: { 200: MEMBER_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed'],
  })
  @HttpCode(200)
  async activate(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
    @IfMatch() check: MemberCheck | undefined,
  ): Promise<MemberJson> {
    const act = { admin: adminOf(session), memberId, origin, check };
    return memberJson(await this.members.activate(act));
  }

  @Post(':id/deactivate')
  @Route({
    summary: 'Deactivates a member',
    answers: { 200: ENDED_MEMBER_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed', 'last_admin'],
  })
  @HttpCode(200)
  async deactivate(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
    @IfMatch() check: MemberCheck | undefined,
  ): Promise<EndedMemberJson> {
    const act = { admin: adminOf(session), memberId, origin, check };
    const { member, ended } = await this.members.deactivate(act);
    return endedMemberJson(member, ended);
  }

  @Post(':id/revoke-credentials')
  @Route({
    summary: 'Revokes all credentials of a member',
    answers: { 200: ENDED_MEMBER_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed'],
  })
  @HttpCode(200)
  async revokeCredentials(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
    @IfMatch() check: MemberCheck | undefined,
  ): Promise<EndedMemberJson> {
    const act = { admin: adminOf(session), memberId, origin, check };
    const { member, ended } = await this.members.revokeCredentials(act);
    return endedMemberJson(member, ended);
  }

  @Post(':id/remove')
  @Route({
    summary: 'Removes a member',
    answers: { 200: ONLY_ENDED_JSON, 204: null },
    refusals: ['not_found', 'own_account', 'precondition_failed', 'last_admin'],
  })
  async remove(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id: memberId }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
    @IfMatch() check: MemberCheck | undefined,
    @Headers('prefer') prefer: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    const act = { admin: adminOf(session), memberId, origin, check };
    sendDeleted(response, prefer, { ended: await this.members.remove(act) });
  }

  @Delete(':id/sessions/:session_id')
  @Route({
    summary: 'Ends a session of a member',
    answers: { 200: ONLY_ENDED_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed'],
  })
  @HttpCode(200)
  async endSession(
    @Caller() session: VerifiedSession,
    @Param({ schema: SESSION_OF_MEMBER })
    { id: memberId, session_id: sessionId }: { id: string; session_id: string },
    @ClientOrigin() origin: AuditOrigin,
    @IfMatch() check: MemberCheck | undefined,
  ): Promise<OnlyEndedJson> {
    const act = { admin: adminOf(session), memberId, origin, check };
    return { ended: await this.access.endSession(act, sessionId) };
  }

  @Delete(':id/keys/:key_id')
  @Route({
    summary: 'Removes a key of a member with everything that it opened; never the only key',
    answers: { 200: ONLY_ENDED_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed', 'last_key'],
  })
  @HttpCode(200)
  async removeKey(
    @Caller() session: VerifiedSession,
    @Param({ schema: KEY_OF_MEMBER })
    { id: memberId, key_id: keyId }: { id: string; key_id: string },
    @ClientOrigin() origin: AuditOrigin,
    @IfMatch() check: MemberCheck | undefined,
  ): Promise<OnlyEndedJson> {
    const act = { admin: adminOf(session), memberId, origin, check };
    return { ended: await this.access.removeKey(act, keyId) };
  }
}
