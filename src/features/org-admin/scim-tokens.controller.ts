import { Body, Controller, Delete, Get, HttpCode, Param, Post } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { adminOf } from '#domain/directory/members.service.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import {
  CREATE_TOKEN,
  NEW_TOKEN_JSON,
  newTokenJson,
  SCIM_TOKENS_JSON,
  scimRefusalJson,
  scimTokenJson,
  TOKEN_ID,
  type CreateToken,
  type NewTokenJson,
  type ScimRefusalJson,
  type ScimTokenJson,
} from './scim-tokens.schemas.js';
import { OrganizationAdmin } from '#domain/admin/organization/organization-admin.service.js';

/**
 * The valid SCIM tokens of an organization, and the refused writes of the clients that used them.
 */
interface TokensJson {
  readonly tokens: ScimTokenJson[];
  readonly refused_writes: ScimRefusalJson[];
}

/**
 * `/api/v1/org/scim-tokens`: the SCIM tokens of the organization. Of these routes, only the
 * creation of a token returns its secret.
 */
@Controller('api/v1/org/scim-tokens')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class ScimTokensController {
  constructor(private readonly organizationAdmin: OrganizationAdmin) {}

  @Post()
  @Route({
    operation: 'createScimToken',
    summary: 'Creates a SCIM token',
    answers: { 201: NEW_TOKEN_JSON },
    refusals: ['admin_required', 'limit_reached', 'not_found', 'rotation_pending'],
  })
  @HttpCode(201)
  async create(
    @Caller() session: VerifiedSession,
    @Body({ schema: CREATE_TOKEN }) body: CreateToken,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<NewTokenJson> {
    const { description, expires_in_days: expiresInDays, replaces } = body;
    const token = { description, expiresInDays, replaces };
    return newTokenJson(await this.organizationAdmin.createToken(adminOf(session), token, origin));
  }

  @Get()
  @Route({
    auth: ADMIN_READS,
    operation: 'listScimTokens',
    summary: 'Lists the SCIM tokens',
    answers: { 200: SCIM_TOKENS_JSON },
    refusals: ['admin_required'],
  })
  async list(@Caller() session: VerifiedSession): Promise<TokensJson> {
    const admin = adminOf(session);
    const [tokens, refusals] = await Promise.all([
      this.organizationAdmin.listTokens(admin),
      this.organizationAdmin.listRefusals(admin),
    ]);
    return { tokens: tokens.map(scimTokenJson), refused_writes: refusals.map(scimRefusalJson) };
  }

  /**
   * Revokes a SCIM token. A revocation only reduces access, so it demands no recent touch of the
   * security key.
   */
  @Delete(':id')
  @Route({
    auth: ADMIN_READS,
    operation: 'revokeScimToken',
    summary: 'Revokes a SCIM token',
    answers: { 204: null },
    refusals: ['admin_required', 'not_found'],
  })
  @HttpCode(204)
  async revoke(
    @Caller() session: VerifiedSession,
    @Param({ schema: TOKEN_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.organizationAdmin.revokeToken(adminOf(session), id, origin);
  }
}
