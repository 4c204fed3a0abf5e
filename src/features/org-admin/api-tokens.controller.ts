import { Body, Controller, Delete, Get, HttpCode, Param, Post } from '@nestjs/common';
import type { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { OrganizationAdmin } from '#domain/admin/organization/organization-admin.service.js';
import { adminOf } from '#domain/directory/members.service.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import {
  API_TOKEN_ID,
  API_TOKENS_JSON,
  apiTokenJson,
  CREATE_API_TOKEN,
  listedApiTokenJson,
  NEW_API_TOKEN_JSON,
  newApiTokenJson,
  ROTATE_API_TOKEN,
  type CreateApiToken,
  type NewApiTokenJson,
  type RotateApiToken,
} from './api-tokens.schemas.js';

/**
 * `/api/v1/org/api-tokens`: the API tokens of the organization. Only the responses to the creation
 * and to the rotation of a token have its secret.
 */
@Controller('api/v1/org/api-tokens')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class ApiTokensController {
  constructor(private readonly organizationAdmin: OrganizationAdmin) {}

  @Get()
  @Route({
    auth: ADMIN_READS,
    operation: 'listApiTokens',
    summary: 'Lists the API tokens',
    answers: { 200: API_TOKENS_JSON },
    refusals: ['admin_required'],
  })
  async list(@Caller() session: VerifiedSession): Promise<z.output<typeof API_TOKENS_JSON>> {
    const { valid, orphans } = await this.organizationAdmin.apiTokens.list(adminOf(session));
    return { tokens: valid.map(listedApiTokenJson), ended_with_maker: orphans.map(apiTokenJson) };
  }

  @Post()
  @Route({
    operation: 'createApiToken',
    summary: 'Creates an API token',
    answers: { 201: NEW_API_TOKEN_JSON },
    refusals: ['admin_required', 'limit_reached', 'not_found'],
  })
  @HttpCode(201)
  async create(
    @Caller() session: VerifiedSession,
    @Body({ schema: CREATE_API_TOKEN }) body: CreateApiToken,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<NewApiTokenJson> {
    const wanted = {
      name: body.name,
      scopes: body.scopes,
      expiresInDays: body.expires_in_days,
      allowedCidrs: [...new Set(body.allowed_cidrs)],
      scimTokenIds: [...new Set(body.scim_token_ids)],
    };
    const { apiTokens } = this.organizationAdmin;
    return newApiTokenJson(await apiTokens.create(adminOf(session), wanted, origin));
  }

  @Delete(':id')
  @Route({
    operation: 'revokeApiToken',
    summary: 'Revokes an API token',
    answers: { 204: null },
    refusals: ['admin_required', 'not_found'],
  })
  @HttpCode(204)
  async revoke(
    @Caller() session: VerifiedSession,
    @Param({ schema: API_TOKEN_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.organizationAdmin.apiTokens.revoke(adminOf(session), id, origin);
  }

  @Post(':id/rotate')
  @Route({
    operation: 'rotateApiToken',
    summary: 'Makes the successor of an API token, also of one that ended with its maker',
    answers: { 201: NEW_API_TOKEN_JSON },
    refusals: ['admin_required', 'limit_reached', 'not_found', 'rotation_pending'],
  })
  @HttpCode(201)
  async rotate(
    @Caller() session: VerifiedSession,
    @Param({ schema: API_TOKEN_ID }) { id }: { id: string },
    @Body({ schema: ROTATE_API_TOKEN }) body: RotateApiToken,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<NewApiTokenJson> {
    const wanted = { expiresInDays: body.expires_in_days, overlapHours: body.overlap_hours };
    const { apiTokens } = this.organizationAdmin;
    return newApiTokenJson(await apiTokens.rotate(adminOf(session), id, wanted, origin));
  }
}
