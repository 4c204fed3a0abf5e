import { Controller, Get, HttpCode, Param, Post } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { OrganizationAdmin } from '#domain/admin/organization/organization-admin.service.js';
import { adminOf } from '#domain/directory/members.service.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import {
  LISTED_ID,
  SECRETS_TO_CONFIRM_JSON,
  secretToConfirmJson,
  type SecretToConfirmJson,
} from './secrets.schemas.js';

/**
 * `/api/v1/org/secrets-to-confirm`: SCIM tokens, API tokens and client secrets whose creation or
 * end the database may have lost in a failover. For each of them, an admin confirms that it is as
 * it should be: it still exists, or it has ended.
 */
@Controller('api/v1/org/secrets-to-confirm')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class SecretsToConfirmController {
  constructor(private readonly organizationAdmin: OrganizationAdmin) {}

  @Get()
  @Route({
    auth: ADMIN_READS,
    operation: 'listSecretsToConfirm',
    summary: 'Lists the secrets to confirm after the database has lost commits',
    answers: { 200: SECRETS_TO_CONFIRM_JSON },
    refusals: ['admin_required'],
  })
  async list(@Caller() session: VerifiedSession): Promise<{ secrets: SecretToConfirmJson[] }> {
    const listed = await this.organizationAdmin.listSecretsToConfirm(adminOf(session));
    return { secrets: listed.map(secretToConfirmJson) };
  }

  @Post(':id/confirm')
  @Route({
    operation: 'confirmSecret',
    summary: 'Confirms that a secret is as it should be',
    answers: { 204: null },
    refusals: ['admin_required', 'not_found'],
  })
  @HttpCode(204)
  async confirm(
    @Caller() session: VerifiedSession,
    @Param({ schema: LISTED_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.organizationAdmin.confirmSecret(adminOf(session), id, origin);
  }
}
