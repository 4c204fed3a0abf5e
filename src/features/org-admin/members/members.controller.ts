import { Controller, Get, Param, Query, Req, Res, type StreamableFile } from '@nestjs/common';
import type { Request, Response } from 'express';
import { adminOf } from '#domain/directory/members.service.js';
import { MemberRecords } from '#domain/admin/members/member-records.service.js';
import { ADMIN_READS } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { memberTag } from './member-act.js';
import {
  answerMembers,
  MEMBERS_ANSWERS,
  MEMBERS_QUERY,
  type MembersQuery,
} from './member-answer.js';
import {
  MEMBER_ID,
  MEMBER_RECORD_JSON,
  memberRecordJson,
  type MembersJson,
} from './members.schemas.js';

/** `/api/v1/org/members`: shows the members of the organization to its admins. */
@Controller('api/v1/org/members')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_READS })
export class MembersController {
  constructor(private readonly records: MemberRecords) {}

  @Get()
  @Route({ operation: 'listMembers', summary: 'Lists the members', ...MEMBERS_ANSWERS })
  list(
    @Caller() session: VerifiedSession,
    @Query({ schema: MEMBERS_QUERY }) asked: MembersQuery,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<StreamableFile | MembersJson> {
    return answerMembers(this.records, adminOf(session), { asked, request, response });
  }

  /**
   * Shows a member. The response is never 304, because it also shows the sessions of the member,
   * which the entity tag does not cover. The tag is only for `If-Match` in a later change.
   */
  @Get(':id')
  @Route({
    operation: 'getMember',
    summary: 'Shows a member with keys, sessions, certificates, applications and GitHub tokens',
    answers: { 200: MEMBER_RECORD_JSON },
    refusals: ['not_found'],
  })
  async show(
    @Caller() session: VerifiedSession,
    @Param({ schema: MEMBER_ID }) { id }: { id: string },
    @Res() response: Response,
  ): Promise<void> {
    const record = await this.records.show(adminOf(session), id);
    response.setHeader('ETag', memberTag(record.member));
    response.type('application/json').end(JSON.stringify(memberRecordJson(record)));
  }
}
