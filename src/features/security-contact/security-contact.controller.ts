import { Controller, Get, Inject, Res } from '@nestjs/common';
import type { Response } from 'express';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { securityText } from './security-text.js';

/**
 * Serves `GET /.well-known/security.txt`, which says where to report a vulnerability (RFC 9116).
 */
@Controller('.well-known/security.txt')
@Route({ tier: 'unlimited', audience: 'api', errors: 'negotiated', auth: PUBLIC })
export class SecurityContactController {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly clock: Clock,
  ) {}

  /**
   * Returns the text of `security.txt`.
   * @throws DomainError not_found if the operator has set no contact
   */
  @Get()
  @Route({
    operation: 'getSecurityContact',
    summary: 'Where to report a vulnerability (RFC 9116)',
    answers: { 200: { 'text/plain': 'text' } },
    refusals: ['not_found'],
  })
  read(@Res() response: Response): void {
    const { securityContact: contact, http } = this.config;
    if (contact === undefined) {
      throw new DomainError('not_found', 'The operator of this service has named no contact.');
    }
    const text = securityText({ contact, baseUrl: http.baseUrl }, this.clock.now());
    response.type('text/plain').send(text);
  }
}
