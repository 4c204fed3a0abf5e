import { All, Controller, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DomainError } from '#platform/errors/domain-error.js';
import { allowedMethods, FALLBACK_TEMPLATE } from '#platform/http/routing/allowed-methods.js';

/**
 * Whatever no route took, brought before the guards like every route: 405 where another method would do (RFC 9110
 * §15.5.6), 404 elsewhere.
 */
@Controller()
export class FallbackController {
  @All(FALLBACK_TEMPLATE)
  refuse(@Req() request: Request, @Res() response: Response): void {
    const methods = allowedMethods(request.app, request.path);
    if (methods.length === 0) throw new DomainError('not_found', 'There is nothing here.');
    response.setHeader('Allow', [...methods, 'OPTIONS'].join(', '));
    if (request.method !== 'OPTIONS') {
      throw new DomainError(
        'method_not_allowed',
        `This address allows only ${methods.join(', ')}.`,
      );
    }
    response.status(204).end();
  }
}
