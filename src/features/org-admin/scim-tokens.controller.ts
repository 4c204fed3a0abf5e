import { Body, Controller, Delete, Get, HttpCode, Param, Post } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Caller } from '#platform/http/access/access.js';
import { Route } from '#platform/http/routing/route.js';
import { ADMIN_READS, ADMIN_WRITES, adminOf } from './admin.js';
import {
  CREATE_TOKEN,
  newTokenJson,
  scimTokenJson,
  TOKEN_ID,
  type CreateToken,
  type NewTokenJson,
  type ScimTokenJson,
} from './scim-tokens.schemas.js';
import { ScimTokens } from './scim-tokens.service.js';

/** `/api/v1/org/scim-tokens`: the tokens of the organization's identity provider, told once. */
@Controller('api/v1/org/scim-tokens')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class ScimTokensController {
  constructor(private readonly tokens: ScimTokens) {}

  @Post()
  @Route({ summary: 'Creates a SCIM token' })
  @HttpCode(201)
  async create(
    @Caller() session: VerifiedSession,
    @Body({ schema: CREATE_TOKEN }) { description, expires_in_days: expiresInDays }: CreateToken,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<NewTokenJson> {
    const token = { description, expiresInDays };
    return newTokenJson(await this.tokens.create(adminOf(session), token, origin));
  }

  @Get()
  @Route({ auth: ADMIN_READS, summary: 'Lists the SCIM tokens' })
  async list(@Caller() session: VerifiedSession): Promise<{ readonly tokens: ScimTokenJson[] }> {
    const tokens = await this.tokens.list(adminOf(session));
    return { tokens: tokens.map(scimTokenJson) };
  }

  /** The safe direction: it asks for no new touch. */
  @Delete(':id')
  @Route({ auth: ADMIN_READS, summary: 'Revokes a SCIM token' })
  @HttpCode(204)
  async revoke(
    @Caller() session: VerifiedSession,
    @Param({ schema: TOKEN_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.tokens.revoke(adminOf(session), id, origin);
  }
}
