import { Controller, Get, Param, Query, Req, Res, type StreamableFile } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { z } from 'zod';
import { AccessRules } from '#domain/admin/access-rules/access-rules.service.js';
import { TARGET_QUERY, type TargetQuery } from '#domain/admin/access-rules/target-query.js';
import { MemberRecords } from '#domain/admin/members/member-records.service.js';
import type { Program } from '#domain/directory/api-tokens/api-tokens.repository.js';
import { forPrograms } from '#domain/sessions/program-itself.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import {
  TARGET_PATH,
  TARGET_RULE_JSON,
  targetRuleJson,
  TARGETS_JSON,
  targetsJson,
  type TargetRuleJson,
  type TargetsJson,
} from './access/access.schemas.js';
import { namedTarget } from './access/rule-act.js';
import {
  answerMembers,
  MEMBERS_ANSWERS,
  MEMBERS_QUERY,
  type MembersQuery,
} from './members/member-answer.js';
import type { MembersJson } from './members/members.schemas.js';

/**
 * `/api/v1/programs/members` and `/api/v1/programs/access`: the lists of members and of targets for
 * programs, which read them by their API tokens.
 */
@Controller('api/v1/programs')
@Route({ tier: 'general', audience: 'api', errors: 'problem' })
export class ProgramReadsController {
  constructor(
    private readonly records: MemberRecords,
    private readonly accessRules: AccessRules,
  ) {}

  @Get('members')
  @Route({
    auth: forPrograms('members:read'),
    operation: 'listMembersForProgram',
    summary: 'Lists the members to a program',
    ...MEMBERS_ANSWERS,
  })
  members(
    @Caller() program: Program,
    @Query({ schema: MEMBERS_QUERY }) asked: MembersQuery,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<StreamableFile | MembersJson> {
    return answerMembers(this.records, program, { asked, request, response });
  }

  @Get('access')
  @Route({
    auth: forPrograms('access:read'),
    operation: 'listTargetsForProgram',
    summary: 'Lists the targets with their rules to a program',
    answers: { 200: TARGETS_JSON },
  })
  async targets(
    @Caller() program: Program,
    @Query({ schema: TARGET_QUERY }) query: TargetQuery,
  ): Promise<TargetsJson> {
    return targetsJson(await this.accessRules.list(program, query));
  }

  @Get('access/:kind/:id')
  @Route({
    auth: forPrograms('access:read'),
    operation: 'getTargetForProgram',
    summary: 'Shows a target with its whole rule to a program',
    answers: { 200: TARGET_RULE_JSON },
    refusals: ['not_found'],
  })
  async target(
    @Caller() program: Program,
    @Param({ schema: TARGET_PATH }) path: z.output<typeof TARGET_PATH>,
  ): Promise<TargetRuleJson> {
    return targetRuleJson(await this.accessRules.show(program, namedTarget(path)));
  }
}
