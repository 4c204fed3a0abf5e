import {
  Body,
  Controller,
  Get,
  HttpCode,
  Param,
  Post,
  Put,
  Query,
  Res,
  type StreamableFile,
} from '@nestjs/common';
import type { Response } from 'express';
import type { z } from 'zod';
import { AccessRules } from '#domain/admin/access-rules/access-rules.service.js';
import type { RuleAct } from '#domain/admin/access-rules/rule-audit.js';
import {
  ADMITTED_QUERY,
  TARGET_QUERY,
  type AdmittedQuery,
  type TargetQuery,
} from '#domain/admin/access-rules/target-query.js';
import { adminOf } from '#domain/directory/members.service.js';
import {
  ADMIN_READS,
  ADMIN_WRITES,
  isTouchedWithin,
  RECENT_TOUCH,
} from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Clock } from '#platform/clock/clock.js';
import { Caller } from '#platform/http/access/caller.js';
import { fileOf, tableOf } from '#platform/http/files/line-file.js';
import { MUST_MATCH } from '#platform/http/request/entity-tag.js';
import { Route } from '#platform/http/routing/route.js';
import { REACH_COLUMNS } from './access-csv.js';
import {
  ASKED_CHANGE,
  CHECK_QUERY,
  DECISION_JSON,
  decisionJson,
  PEOPLE_JSON,
  peopleJson,
  PREVIEW_JSON,
  previewJson,
  RULE,
  TARGET_PATH,
  TARGET_RULE_JSON,
  targetRuleJson,
  TARGETS_JSON,
  targetsJson,
  targetTag,
  wantedRule,
  type AskedChangeBody,
  type PeopleJson,
  type PreviewJson,
  type RuleBody,
  type TargetRuleJson,
  type TargetsJson,
} from './access.schemas.js';
import { namedTarget, OnTarget } from './rule-act.js';

type Path = z.output<typeof TARGET_PATH>;

/**
 * `/api/v1/org/access`: lets admins of the organization see and change which people can use which
 * targets. A target is an application, a role of AWS, a group of hosts or a GitHub installation.
 */
@Controller('api/v1/org/access')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_READS })
export class AccessController {
  constructor(
    private readonly accessRules: AccessRules,
    private readonly clock: Clock,
  ) {}

  @Get()
  @Route({
    operation: 'listTargets',
    summary: 'Lists the targets with their rules',
    answers: { 200: TARGETS_JSON },
  })
  async list(
    @Caller() session: VerifiedSession,
    @Query({ schema: TARGET_QUERY }) query: TargetQuery,
  ): Promise<TargetsJson> {
    return targetsJson(await this.accessRules.list(adminOf(session), query));
  }

  @Get('check')
  @Route({
    operation: 'checkAccess',
    summary: 'Explains if a member reaches a target',
    answers: { 200: DECISION_JSON },
    refusals: ['not_found'],
  })
  async check(
    @Caller() session: VerifiedSession,
    @Query({ schema: CHECK_QUERY }) { user, kind, id }: z.output<typeof CHECK_QUERY>,
  ): Promise<z.output<typeof DECISION_JSON>> {
    const ref = namedTarget({ kind, id });
    return decisionJson(await this.accessRules.check(adminOf(session), user, ref));
  }

  /**
   * Exports which people can use which target. The request needs a recent touch of the key, because
   * the export can show the members of a group. If only one group is assigned to a target, the
   * listed people are its members.
   */
  @Get('export')
  @Route({
    auth: ADMIN_WRITES,
    operation: 'exportAccess',
    summary: 'Exports who can reach what as a table',
    answers: { 200: { 'text/csv': 'text' } },
    refusals: ['too_many'],
  })
  async export(@Caller() session: VerifiedSession): Promise<StreamableFile> {
    const batches = await this.accessRules.export(adminOf(session));
    return fileOf('csv', 'access', tableOf(batches, REACH_COLUMNS));
  }

  @Get(':kind/:id')
  @Route({
    operation: 'getTarget',
    summary: 'Shows a target with its whole rule',
    answers: { 200: TARGET_RULE_JSON },
    refusals: ['not_found'],
  })
  async show(
    @Caller() session: VerifiedSession,
    @Param({ schema: TARGET_PATH }) path: Path,
    @Res({ passthrough: true }) response: Response,
  ): Promise<TargetRuleJson> {
    const details = await this.accessRules.show(adminOf(session), namedTarget(path));
    response.setHeader('ETag', targetTag(details.target));
    return targetRuleJson(details);
  }

  @Put(':kind/:id')
  @Route({
    auth: ADMIN_WRITES,
    operation: 'replaceTargetRule',
    summary: 'Replaces the rule of a target with all of its assignments',
    answers: { 200: TARGET_RULE_JSON },
    refusals: ['not_found', 'precondition_failed', 'precondition_required'],
    asks: { headers: MUST_MATCH },
  })
  async put(
    @Param({ schema: TARGET_PATH }) path: Path,
    @Body({ schema: RULE }) body: RuleBody,
    @OnTarget() act: RuleAct,
    @Res({ passthrough: true }) response: Response,
  ): Promise<TargetRuleJson> {
    const details = await this.accessRules.putRule(act, namedTarget(path), wantedRule(body));
    response.setHeader('ETag', targetTag(details.target));
    return targetRuleJson(details);
  }

  /**
   * Lists the people that a target admits. Without a recent touch of the key, the names are left
   * out if the list would show who is in a group.
   */
  @Get(':kind/:id/people')
  @Route({
    operation: 'listAdmittedMembers',
    summary: 'Lists the members whom a target admits',
    answers: { 200: PEOPLE_JSON },
    refusals: ['not_found'],
  })
  async people(
    @Caller() session: VerifiedSession,
    @Param({ schema: TARGET_PATH }) path: Path,
    @Query({ schema: ADMITTED_QUERY }) query: AdmittedQuery,
  ): Promise<PeopleJson> {
    const mayName = isTouchedWithin(RECENT_TOUCH.admin, session, this.clock.now().getTime());
    const admin = adminOf(session);
    return peopleJson(
      await this.accessRules.admitted(admin, namedTarget(path), query, { mayName }),
    );
  }

  @Post(':kind/:id/preview')
  @Route({
    auth: ADMIN_WRITES,
    operation: 'previewTargetChange',
    summary: 'Says who would gain and who would lose a target by a change, and what would end',
    answers: { 200: PREVIEW_JSON },
    refusals: ['not_found'],
  })
  @HttpCode(200)
  async preview(
    @Caller() session: VerifiedSession,
    @Param({ schema: TARGET_PATH }) path: Path,
    @Body({ schema: ASKED_CHANGE }) body: AskedChangeBody,
  ): Promise<PreviewJson> {
    const change = 'deleted' in body ? 'deleted' : wantedRule(body);
    const seen = { mayName: true } as const;
    const preview = await this.accessRules.preview(
      adminOf(session),
      namedTarget(path),
      change,
      seen,
    );
    return previewJson(preview);
  }
}
