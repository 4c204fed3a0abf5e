import { Body, Controller, Delete, Get, HttpCode, Param, Post } from '@nestjs/common';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { SECRET_JSON, secretJson, type SecretJson } from './application-json.js';
import { APPLICATION_READS, APPLICATION_WRITES, managerOf } from './application-manager.js';
import { APPLICATION_ID, ROTATE, SECRET_ID, type SecretRotation } from './applications.schemas.js';
import { Applications } from './applications.service.js';

/** The JSON of the valid secrets of an application, without their values. */
const SECRETS_JSON = z
  .object({ secrets: z.array(SECRET_JSON).describe('The valid secrets.') })
  .describe('The secrets of the application.');

/** The JSON of a new secret with its value, and of all valid secrets without theirs. */
const NEW_SECRET_JSON = SECRETS_JSON.extend({
  id: z.string().describe('The id of the new secret.'),
  client_secret: z.string().describe('The new secret. Only this answer has it.'),
}).describe('The new secret of the application.');

/**
 * `/api/v1/applications/{id}/secrets`: the secrets of an application. A secret is shown only when
 * it is created.
 */
@Controller('api/v1/applications/:id/secrets')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: APPLICATION_WRITES })
export class ApplicationSecretsController {
  constructor(private readonly applications: Applications) {}

  @Get()
  @Route({
    auth: APPLICATION_READS,
    operation: 'listApplicationSecrets',
    summary: 'Lists the secrets of an application',
    answers: { 200: SECRETS_JSON },
    refusals: ['not_found'],
  })
  async list(
    @Caller() session: VerifiedSession,
    @Param({ schema: APPLICATION_ID }) { id }: { id: string },
  ): Promise<{ readonly secrets: SecretJson[] }> {
    const secrets = await this.applications.listSecrets(managerOf(session), id);
    return { secrets: secrets.map(secretJson) };
  }

  @Post()
  @Route({
    operation: 'addApplicationSecret',
    summary: 'Adds a secret to an application',
    answers: { 201: NEW_SECRET_JSON },
    refusals: ['not_found', 'limit_reached'],
  })
  @HttpCode(201)
  async rotate(
    @Caller() session: VerifiedSession,
    @Param({ schema: APPLICATION_ID }) { id }: { id: string },
    @Body({ schema: ROTATE }) rotation: SecretRotation,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<{
    readonly id: string;
    readonly client_secret: string;
    readonly secrets: SecretJson[];
  }> {
    const { added, live } = await this.applications.rotateSecret(
      managerOf(session),
      id,
      {
        overlap: rotation.expires_previous_in_seconds,
        expiresInDays: rotation.expires_in_days ?? null,
      },
      origin,
    );
    return { id: added.id, client_secret: added.secret, secrets: live.map(secretJson) };
  }

  @Delete(':secretId')
  @Route({
    operation: 'revokeApplicationSecret',
    summary: 'Revokes a secret of an application',
    answers: { 204: null },
    refusals: ['not_found'],
  })
  @HttpCode(204)
  async revoke(
    @Caller() session: VerifiedSession,
    @Param({ schema: SECRET_ID }) { id, secretId }: { id: string; secretId: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.applications.revokeSecret(managerOf(session), id, secretId, origin);
  }
}
