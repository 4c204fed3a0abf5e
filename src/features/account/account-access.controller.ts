import { Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import type { z } from 'zod';
import { OwnAccess } from '#domain/account/own-access.service.js';
import type { EventRange } from '#domain/account/own-events.repository.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { USER_ACCESS } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Route } from '#platform/http/routing/route.js';
import {
  APPLICATIONS_JSON,
  CLIENT_ID,
  CREDENTIALS_JSON,
  ENDED_ACCESS_JSON,
  PAGE_QUERY,
  REVOKED_JSON,
  SERIAL,
  applicationJson,
  credentialJson,
  nextJson,
} from './account.schemas.js';

/**
 * Serves the credentials that were issued in the name of a user, and the applications that the user
 * signed in to.
 */
@Controller('v1/account')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: USER_ACCESS })
export class AccountAccessController {
  constructor(private readonly access: OwnAccess) {}

  @Get('credentials')
  @Route({
    operation: 'listMyCredentials',
    summary: 'Lists the credentials that were issued in the name of the user',
    answers: { 200: CREDENTIALS_JSON },
  })
  async listCredentials(
    @Caller() { user }: VerifiedSession,
    @Query({ schema: PAGE_QUERY }) range: EventRange,
  ): Promise<z.output<typeof CREDENTIALS_JSON>> {
    const { items, next } = await this.access.credentials(user.id, range);
    return { credentials: items.map(credentialJson), next: nextJson(next) };
  }

  @Post('certificates/:serial/revoke')
  @HttpCode(200)
  @Route({
    operation: 'revokeMyCertificate',
    summary: 'Revokes a live SSH certificate of the user',
    answers: { 200: REVOKED_JSON },
    refusals: ['not_found'],
  })
  async revokeCertificate(
    @Caller() { user }: VerifiedSession,
    @Param({ schema: SERIAL }) { serial }: z.output<typeof SERIAL>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<z.output<typeof REVOKED_JSON>> {
    const revoked = await this.access.revokeCertificate(user, serial, origin);
    return {
      serial: revoked.serial,
      revoked_at: revoked.revokedAt.toISOString(),
      ended: { certificates: 1 },
    };
  }

  @Get('applications')
  @Route({
    operation: 'listMyApplications',
    summary: 'Lists the applications that the user signed in to',
    answers: { 200: APPLICATIONS_JSON },
  })
  async listApplications(
    @Caller() { user }: VerifiedSession,
  ): Promise<z.output<typeof APPLICATIONS_JSON>> {
    return { applications: (await this.access.applications(user.id)).map(applicationJson) };
  }

  @Delete('applications/:client_id')
  @Route({
    operation: 'endApplicationAccess',
    summary: 'Ends the access of an application to the user',
    answers: { 200: ENDED_ACCESS_JSON },
    refusals: ['not_found', 'account_inactive'],
  })
  async endAccess(
    @Caller() { user }: VerifiedSession,
    @Param({ schema: CLIENT_ID }) { client_id }: z.output<typeof CLIENT_ID>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<z.output<typeof ENDED_ACCESS_JSON>> {
    return { ended: await this.access.endApplication(user, client_id, origin) };
  }
}
