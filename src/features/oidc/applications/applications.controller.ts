import {
  Body,
  Controller,
  Delete,
  Get,
  Headers,
  HttpCode,
  Param,
  Patch,
  Post,
  Query,
  Res,
} from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import {
  applicationVersion,
  type ClientApplication,
} from '#domain/oauth/applications/applications.repository.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { assertMatches, entityTag, IF_MATCH } from '#platform/http/request/entity-tag.js';
import { DELETED_JSON, PREFER, sendDeleted } from '#platform/http/request/preference.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import {
  APPLICATION_JSON,
  applicationJson,
  APPLICATIONS_JSON,
  NEW_APPLICATION_JSON,
  type ApplicationJson,
} from './application-json.js';
import { APPLICATION_READS, APPLICATION_WRITES, managerOf } from './application-manager.js';
import {
  APPLICATION_ID,
  UPDATE,
  PAGE,
  REGISTER,
  type ApplicationUpdate,
  type ApplicationsPage,
} from './applications.schemas.js';
import { Applications } from './applications.service.js';
import { Clusters } from './clusters.service.js';
import { ManagedApplications } from '#domain/oauth/applications/managed-applications.service.js';

/** The JSON of the response after all tokens of an application were revoked. */
const REVOKED_JSON = z
  .object({ revoked: z.int().describe('The number of revoked tokens.') })
  .describe('What was revoked.');

/**
 * `/api/v1/applications`: the OAuth clients that users register, and the clusters that admins
 * register. An application that the user does not manage gets 404.
 */
@Controller('api/v1/applications')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: APPLICATION_WRITES })
export class ApplicationsController {
  constructor(
    private readonly applications: Applications,
    private readonly clusters: Clusters,
    private readonly managedApplications: ManagedApplications,
  ) {}

  @Post()
  @Route({
    operation: 'registerApplication',
    summary: 'Registers an application',
    answers: { 201: NEW_APPLICATION_JSON },
    refusals: ['limit_reached', 'admin_required', 'uniqueness', 'account_inactive'],
  })
  @HttpCode(201)
  async register(
    @Caller() session: VerifiedSession,
    @Body({ schema: REGISTER }) body: z.output<typeof REGISTER>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<ApplicationJson & { readonly client_secret?: string }> {
    const manager = managerOf(session);
    if (body.type === 'kubernetes') {
      return applicationJson(await this.clusters.register(manager, body, origin));
    }
    const { application, secret } = await this.applications.register(manager, body, origin);
    return {
      ...applicationJson(application),
      ...(secret === undefined ? {} : { client_secret: secret }),
    };
  }

  @Get()
  @Route({
    auth: APPLICATION_READS,
    operation: 'listApplications',
    summary: 'Lists the applications of the caller',
    answers: { 200: APPLICATIONS_JSON },
  })
  async list(
    @Caller() session: VerifiedSession,
    @Query({ schema: PAGE }) { after }: ApplicationsPage,
  ) {
    const { applications, next } = await this.managedApplications.list(managerOf(session), after);
    return { applications: applications.map(applicationJson), next };
  }

  @Get(':id')
  @Route({
    auth: APPLICATION_READS,
    operation: 'getApplication',
    summary: 'Shows an application',
    answers: { 200: APPLICATION_JSON },
    refusals: ['not_found'],
  })
  async find(
    @Caller() session: VerifiedSession,
    @Param({ schema: APPLICATION_ID }) { id }: { id: string },
    @Res({ passthrough: true }) response: Response,
  ): Promise<ApplicationJson> {
    const application = await this.managedApplications.find(managerOf(session), id);
    response.setHeader('ETag', entityTag(applicationVersion(application)));
    return applicationJson(application);
  }

  @Patch(':id')
  @Route({
    operation: 'changeApplication',
    summary: 'Changes an application',
    answers: { 200: APPLICATION_JSON },
    refusals: ['not_found', 'precondition_failed'],
    asks: { headers: IF_MATCH },
  })
  async update(
    @Caller() session: VerifiedSession,
    @Param({ schema: APPLICATION_ID }) { id }: { id: string },
    @Body({ schema: UPDATE }) body: ApplicationUpdate,
    @ClientOrigin() origin: AuditOrigin,
    @Headers('if-match') ifMatch: string | undefined,
    @Res({ passthrough: true }) response: Response,
  ): Promise<ApplicationJson> {
    const check = (current: ClientApplication) =>
      assertMatches(ifMatch, entityTag(applicationVersion(current)));
    const manager = managerOf(session);
    const application = await this.applications.update(manager, id, body, origin, check);
    response.setHeader('ETag', entityTag(applicationVersion(application)));
    return applicationJson(application);
  }

  @Delete(':id')
  @Route({
    operation: 'removeApplication',
    summary: 'Removes an application',
    answers: { 200: DELETED_JSON, 204: null },
    asks: { headers: PREFER },
    refusals: ['not_found'],
  })
  async remove(
    @Caller() session: VerifiedSession,
    @Param({ schema: APPLICATION_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
    @Headers('prefer') prefer: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    const ended = await this.applications.remove(managerOf(session), id, origin);
    sendDeleted(response, prefer, { ended });
  }

  @Post(':id/approve')
  @Route({
    operation: 'approveApplication',
    summary: 'Approves an application for the redirect URIs that it has',
    answers: { 200: APPLICATION_JSON },
    refusals: ['not_found', 'admin_required', 'precondition_failed'],
    asks: { headers: IF_MATCH },
  })
  @HttpCode(200)
  async approve(
    @Caller() session: VerifiedSession,
    @Param({ schema: APPLICATION_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
    @Headers('if-match') ifMatch: string | undefined,
    @Res({ passthrough: true }) response: Response,
  ): Promise<ApplicationJson> {
    const check = (current: ClientApplication) =>
      assertMatches(ifMatch, entityTag(applicationVersion(current)));
    const manager = managerOf(session);
    const application = await this.managedApplications.approve(manager, id, origin, check);
    response.setHeader('ETag', entityTag(applicationVersion(application)));
    return applicationJson(application);
  }

  @Post(':id/revoke-tokens')
  @Route({
    operation: 'revokeApplicationTokens',
    summary: 'Revokes all tokens of an application',
    answers: { 200: REVOKED_JSON },
    refusals: ['not_found'],
  })
  @HttpCode(200)
  async revokeTokens(
    @Caller() session: VerifiedSession,
    @Param({ schema: APPLICATION_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<{ readonly revoked: number }> {
    return { revoked: await this.applications.revokeTokens(managerOf(session), id, origin) };
  }
}
