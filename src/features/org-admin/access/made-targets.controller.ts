import { Body, Controller, Delete, HttpCode, Param, Patch, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { z } from 'zod';
import { AccessRules } from '#domain/admin/access-rules/access-rules.service.js';
import type { RuleAct } from '#domain/admin/access-rules/rule-audit.js';
import type { Target } from '#domain/admin/access-rules/target.js';
import { ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { MUST_MATCH } from '#platform/http/request/entity-tag.js';
import { Route } from '#platform/http/routing/route.js';
import {
  CHANGE_HOST_GROUP,
  CHANGE_ROLE,
  MADE_PATH,
  NEW_HOST_GROUP,
  NEW_ROLE,
  roleChange,
  TARGET_JSON,
  targetJson,
  targetTag,
  type TargetJson,
} from './access.schemas.js';
import { OnTarget } from './rule-act.js';

const OF_CREATION: ErrorCode[] = ['limit_reached', 'uniqueness'];
const OF_CHANGE: ErrorCode[] = ['not_found', 'precondition_failed', 'precondition_required'];

type Path = z.output<typeof MADE_PATH>;

/**
 * `/api/v1/org/access/aws_role` and `/host_group`: creates, changes and deletes the targets that
 * admins make, which are roles of AWS and groups of hosts.
 */
@Controller('api/v1/org/access')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class MadeTargetsController {
  constructor(private readonly accessRules: AccessRules) {}

  @Post('aws_role')
  @Route({
    operation: 'addAwsRole',
    summary: 'Adds a role of AWS',
    answers: { 201: TARGET_JSON },
    refusals: OF_CREATION,
  })
  @HttpCode(201)
  async createRole(
    @Body({ schema: NEW_ROLE }) body: z.output<typeof NEW_ROLE>,
    @OnTarget() act: RuleAct,
    @Res({ passthrough: true }) response: Response,
  ): Promise<TargetJson> {
    const { role_arn: roleArn, name, region } = body;
    const made = { kind: 'aws_role', roleArn, name, region: region ?? null } as const;
    return shown(response, await this.accessRules.create(act, made));
  }

  @Post('host_group')
  @Route({
    operation: 'addHostGroup',
    summary: 'Adds a group of hosts',
    answers: { 201: TARGET_JSON },
    refusals: OF_CREATION,
  })
  @HttpCode(201)
  async createHostGroup(
    @Body({ schema: NEW_HOST_GROUP }) body: z.output<typeof NEW_HOST_GROUP>,
    @OnTarget() act: RuleAct,
    @Res({ passthrough: true }) response: Response,
  ): Promise<TargetJson> {
    const made = { kind: 'host_group', ...body } as const;
    return shown(response, await this.accessRules.create(act, made));
  }

  @Patch('aws_role/:id')
  @Route({
    operation: 'changeAwsRole',
    summary: 'Changes a role of AWS',
    answers: { 200: TARGET_JSON },
    refusals: [...OF_CHANGE, 'uniqueness'],
    asks: { headers: MUST_MATCH },
  })
  async changeRole(
    @Param({ schema: MADE_PATH }) { id }: Path,
    @Body({ schema: CHANGE_ROLE }) body: z.output<typeof CHANGE_ROLE>,
    @OnTarget() act: RuleAct,
    @Res({ passthrough: true }) response: Response,
  ): Promise<TargetJson> {
    const change = roleChange(body);
    return shown(response, await this.accessRules.change(act, { kind: 'aws_role', id }, change));
  }

  @Patch('host_group/:id')
  @Route({
    operation: 'changeHostGroup',
    summary: 'Changes a group of hosts',
    answers: { 200: TARGET_JSON },
    refusals: [...OF_CHANGE, 'uniqueness'],
    asks: { headers: MUST_MATCH },
  })
  async changeHostGroup(
    @Param({ schema: MADE_PATH }) { id }: Path,
    @Body({ schema: CHANGE_HOST_GROUP }) body: z.output<typeof CHANGE_HOST_GROUP>,
    @OnTarget() act: RuleAct,
    @Res({ passthrough: true }) response: Response,
  ): Promise<TargetJson> {
    return shown(response, await this.accessRules.change(act, { kind: 'host_group', id }, body));
  }

  @Delete('aws_role/:id')
  @Route({
    operation: 'deleteAwsRole',
    summary: 'Deletes a role of AWS',
    answers: { 204: null },
    refusals: OF_CHANGE,
    asks: { headers: MUST_MATCH },
  })
  @HttpCode(204)
  async removeRole(
    @Param({ schema: MADE_PATH }) { id }: Path,
    @OnTarget() act: RuleAct,
  ): Promise<void> {
    await this.accessRules.remove(act, { kind: 'aws_role', id });
  }

  @Delete('host_group/:id')
  @Route({
    operation: 'deleteHostGroup',
    summary: 'Deletes a group of hosts',
    answers: { 204: null },
    refusals: OF_CHANGE,
    asks: { headers: MUST_MATCH },
  })
  @HttpCode(204)
  async removeHostGroup(
    @Param({ schema: MADE_PATH }) { id }: Path,
    @OnTarget() act: RuleAct,
  ): Promise<void> {
    await this.accessRules.remove(act, { kind: 'host_group', id });
  }
}

function shown(response: Response, target: Target): TargetJson {
  response.setHeader('ETag', targetTag(target));
  return targetJson(target);
}
