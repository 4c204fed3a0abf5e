import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import {
  IssueCertificate,
  type IssuedCertificate,
} from '#domain/ssh-certificates/issue-certificate.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Access, CurrentSession } from '#platform/http/access.js';
import { BodyLimit } from '#platform/http/body-limits.js';
import { ClientOrigin } from '#platform/http/client-origin.js';

const REQUEST = z.object({
  public_key: z.string(),
  principals: z.array(z.string().max(255)).max(16).optional(),
  ttl_seconds: z.int().positive().optional(),
});

/** `POST /v1/credentials/ssh`: an SSH user certificate for a key of the caller's, until their session ends at most. */
@Controller('v1/credentials/ssh')
@Access({ session: 'verified', origin: 'own' })
@BodyLimit('credentials')
export class SshController {
  constructor(private readonly certificates: IssueCertificate) {}

  @Post()
  @HttpCode(200)
  issue(
    @CurrentSession() session: VerifiedSession,
    @Body({ schema: REQUEST }) request: z.output<typeof REQUEST>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<IssuedCertificate> {
    const { id: userId, email } = session.user;
    if (email === null) {
      throw new DomainError('issuance_refused', 'This account has no e-mail address.');
    }
    return this.certificates.issue({
      session: { sessionId: session.id, userId, email },
      request,
      origin,
    });
  }
}
