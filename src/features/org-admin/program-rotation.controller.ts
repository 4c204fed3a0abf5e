import { Body, Controller, HttpCode, Param, Post } from '@nestjs/common';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { OrganizationAdmin } from '#domain/admin/organization/organization-admin.service.js';
import { ROTATE_SCOPE, type Program } from '#domain/directory/api-tokens/api-tokens.repository.js';
import { forPrograms } from '#domain/sessions/program-itself.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { OVERLAP_HOURS } from './api-tokens.schemas.js';
import { TOKEN_ID } from './scim-tokens.schemas.js';

/** The body of `POST /api/v1/programs/scim-tokens/{id}/rotate`, which may be left out. */
const ROTATE_SCIM_TOKEN = z
  .strictObject({ overlap_hours: OVERLAP_HOURS })
  .prefault({})
  .describe('How long both tokens are valid. The body may be left out.');

/** The new SCIM token with its secret. No other answer contains the secret. */
const ROTATED_JSON = z
  .object({
    id: z.string().describe('The id of the new token.'),
    token: z.string().describe('The new token. Only this answer has it.'),
    description: z.string().describe('What the token is for.'),
    created_at: z.iso.datetime().describe('The time of its creation.'),
    expires_at: z.iso.datetime().describe('The time at which it expires.'),
    replaces: z.string().describe('The id of the token that it replaces.'),
    replaced_ends_at: z.iso
      .datetime()
      .meta({ description: 'The time at which the replaced token ends.' }),
  })
  .meta({ id: 'RotatedScimToken', description: 'The token that replaces another one.' });

/**
 * `POST /api/v1/programs/scim-tokens/{id}/rotate`: a program replaces a SCIM token. The API token
 * of the program must list this SCIM token.
 */
@Controller('api/v1/programs/scim-tokens')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: forPrograms(ROTATE_SCOPE) })
export class ProgramRotationController {
  constructor(private readonly organizationAdmin: OrganizationAdmin) {}

  @Post(':id/rotate')
  @Route({
    operation: 'rotateScimToken',
    summary: 'Replaces a SCIM token for a program',
    answers: { 201: ROTATED_JSON },
    refusals: ['not_found', 'rotation_pending', 'token_rotated'],
  })
  @HttpCode(201)
  async rotate(
    @Caller() program: Program,
    @Param({ schema: TOKEN_ID }) { id }: { id: string },
    @Body({ schema: ROTATE_SCIM_TOKEN }) body: z.output<typeof ROTATE_SCIM_TOKEN>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<z.output<typeof ROTATED_JSON>> {
    const { apiTokens } = this.organizationAdmin;
    const rotated = await apiTokens.rotateScimToken(program, id, body.overlap_hours, origin);
    const { scimToken, secret, oldEndsAt } = rotated;
    return {
      id: scimToken.id,
      token: secret,
      description: scimToken.description,
      created_at: scimToken.createdAt.toISOString(),
      expires_at: scimToken.expiresAt.toISOString(),
      replaces: scimToken.replaces ?? id,
      replaced_ends_at: oldEndsAt.toISOString(),
    };
  }
}
