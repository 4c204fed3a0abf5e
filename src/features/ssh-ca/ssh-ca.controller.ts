import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { CertificateAuthority } from '#domain/ssh/authority/certificate-authority.service.js';
import { AUTHORITY_JSON, authorityJson } from './ssh-ca.schemas.js';

/**
 * `GET /v1/credentials/ssh/ca`: serves the keys of the SSH certificate authority as lines for
 * `TrustedUserCAKeys` of sshd, or as JSON for a client that prefers it.
 */
@Controller('v1/credentials/ssh/ca')
@Route({
  tier: 'general',
  body: { max: 8 * KIB },
  audience: 'api',
  errors: 'problem',
  auth: PUBLIC,
})
export class SshCaController {
  constructor(private readonly authority: CertificateAuthority) {}

  @Get()
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
}
