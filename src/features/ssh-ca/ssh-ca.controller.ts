import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { CertificateAuthority } from '#domain/ssh-certificates/authority/certificate-authority.service.js';

/** `GET /v1/credentials/ssh/ca`: a line fit for `TrustedUserCAKeys`, or JSON when asked for. */
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
  @Route({ summary: 'The public key of the SSH certificate authority' })
  read(@Req() request: Request, @Res() response: Response): void {
    const line = this.authority.publicKeyLine();
    response.vary('Accept');
    if (request.accepts(['text', 'json']) === 'json') {
      const [type = '', key = '', ...comment] = line.split(' ');
      response.json({ public_key: `${type} ${key}`, comment: comment.join(' ') });
      return;
    }
    response.type('text/plain').send(`${line}\n`);
  }
}
