import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { CertificateAuthority } from '#domain/ssh/authority/certificate-authority.service.js';
import { allowedSigners } from '#domain/ssh/signatures/allowed-signers.js';
import { signingDomains } from '#domain/ssh/signatures/signing-domains.repository.js';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { entityTag, namesTag } from '#platform/http/request/entity-tag.js';
import {
  AUTHORITY_JSON,
  authorityJson,
  SIGNING_ORGANIZATION,
  type SigningOrganization,
} from './ssh-ca.schemas.js';

/**
 * `GET /v1/credentials/ssh/ca`: serves the keys of the SSH certificate authority as lines for
 * `TrustedUserCAKeys` of sshd, or as JSON for a client that prefers it. `/allowed_signers/{id}`
 * serves them as lines of the file by which git verifies the signatures of one organization.
 */
@Controller('v1/credentials/ssh')
@Route({
  tier: 'general',
  body: { max: 8 * KIB },
  audience: 'api',
  errors: 'problem',
  auth: PUBLIC,
})
export class SshCaController {
  constructor(
    private readonly authority: CertificateAuthority,
    private readonly manager: EntityManager,
  ) {}

  @Get('ca')
  @Route({
    operation: 'getSshAuthority',
    summary: 'The public keys of the SSH certificate authority, the one that signs first',
    answers: { 200: { 'text/plain': 'text', 'application/json': AUTHORITY_JSON } },
  })
  read(@Req() request: Request, @Res() response: Response): void {
    response.vary('Accept');
    if (request.accepts(['text', 'json']) === 'json') {
      response.json(authorityJson(this.authority));
      return;
    }
    const lines = this.authority.publicKeyLines().map((line) => `${line}\n`);
    response.type('text/plain').send(lines.join(''));
  }

  @Get('allowed_signers/:organization')
  @Route({
    operation: 'getAllowedSigners',
    summary: 'The allowed_signers lines by which git verifies commits of an organization',
    answers: { 200: { 'text/plain': 'text' }, 304: null },
    refusals: ['not_found', 'unavailable'],
    asks: { headers: { 'if-none-match': 'The `ETag` of a file: 304 while it is the same.' } },
  })
  async signers(
    @Param({ schema: SIGNING_ORGANIZATION }) { organization }: SigningOrganization,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const domains = await signingDomains(this.manager, organization);
    if (!domains) throw new DomainError('not_found', 'There is no such organization.');
    const text = allowedSigners(organization, domains, this.authority.publicKeyLines());
    const tag = entityTag(Buffer.from(text));
    response.setHeader('ETag', tag);
    if (namesTag(request.get('if-none-match'), tag)) {
      response.status(304).end();
      return;
    }
    response.type('text/plain').send(text);
  }
}
