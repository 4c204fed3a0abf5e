import { Controller, Delete, Headers, HttpCode, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { Members } from '#domain/directory/members.service.js';
import { MemberAccess } from '#domain/admin/members/member-access.service.js';
import { ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import { IF_MATCH } from '#platform/http/request/entity-tag.js';
import { PREFER, sendDeleted } from '#platform/http/request/preference.js';
import { Route } from '#platform/http/routing/route.js';
import { Act, type ActOn } from './member-act.js';
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
 * Lets admins change the members of the organization. With `If-Match`, a change is refused if the
 * member has changed meanwhile.
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
    operation: 'promoteMember',
    summary: 'Makes a member an admin',
    answers: { 200: MEMBER_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(200)
  async promote(
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
    @Act() act: ActOn,
  ): Promise<MemberJson> {
    return memberJson(await this.members.promote(act(id)));
  }

  @Post(':id/demote')
  @Route({
    operation: 'demoteMember',
    summary: 'Makes an admin a plain member',
    answers: { 200: MEMBER_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed', 'last_admin'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(200)
  async demote(
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
    @Act() act: ActOn,
  ): Promise<MemberJson> {
    return memberJson(await this.members.demote(act(id)));
  }

  @Post(':id/activate')
  @Route({
    operation: 'activateMember',
    summary: 'Activates a member',
    answers: { 200: MEMBER_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(200)
  async activate(
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
    @Act() act: ActOn,
  ): Promise<MemberJson> {
    return memberJson(await this.members.activate(act(id)));
  }

  @Post(':id/deactivate')
  @Route({
    operation: 'deactivateMember',
    summary: 'Deactivates a member',
    answers: { 200: ENDED_MEMBER_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed', 'last_admin'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(200)
  async deactivate(
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
    @Act() act: ActOn,
  ): Promise<EndedMemberJson> {
    const { member, ended } = await this.members.deactivate(act(id));
    return endedMemberJson(member, ended);
  }

  @Post(':id/revoke-credentials')
  @Route({
    operation: 'revokeMemberCredentials',
    summary: 'Revokes all credentials of a member',
    answers: { 200: ENDED_MEMBER_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(200)
  async revokeCredentials(
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
    @Act() act: ActOn,
  ): Promise<EndedMemberJson> {
    const { member, ended } = await this.members.revokeCredentials(act(id));
    return endedMemberJson(member, ended);
  }

  @Post(':id/remove')
  @Route({
    operation: 'removeMember',
    summary: 'Removes a member',
    answers: { 200: ONLY_ENDED_JSON, 204: null },
    refusals: ['not_found', 'own_account', 'precondition_failed', 'last_admin'],
    asks: { headers: { ...IF_MATCH, ...PREFER } },
  })
  async remove(
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
    @Act() act: ActOn,
    @Headers('prefer') prefer: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    sendDeleted(response, prefer, { ended: await this.members.remove(act(id)) });
  }

  @Delete(':id/sessions/:session_id')
  @Route({
    operation: 'endMemberSession',
    summary: 'Ends a session of a member',
    answers: { 200: ONLY_ENDED_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(200)
  async endSession(
    @Param({ schema: SESSION_OF_MEMBER })
    { id, session_id: sessionId }: { id: string; session_id: string },
    @Act() act: ActOn,
  ): Promise<OnlyEndedJson> {
    return { ended: await this.access.endSession(act(id), sessionId) };
  }

  @Delete(':id/keys/:key_id')
  @Route({
    operation: 'removeMemberKey',
    summary: 'Removes a key of a member with everything that it opened; never the only key',
    answers: { 200: ONLY_ENDED_JSON },
    refusals: ['not_found', 'own_account', 'precondition_failed', 'last_key'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(200)
  async removeKey(
    @Param({ schema: KEY_OF_MEMBER }) { id, key_id: keyId }: { id: string; key_id: string },
    @Act() act: ActOn,
  ): Promise<OnlyEndedJson> {
    return { ended: await this.access.removeKey(act(id), keyId) };
  }
}
