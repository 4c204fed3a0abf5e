import { All, Controller, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DomainError } from '#platform/errors/domain-error.js';
import { allowedMethods } from './allowed-methods.js';
import { FALLBACK_TEMPLATE, RoutePolicies } from './route-policies.js';

/**
 * Answers the requests that no route takes, after the same guards as for every route. The status is
 * 405 if the path has a route with another method (RFC 9110 §15.5.6), and otherwise 404. An OPTIONS
 * request for a path with routes gets 204 and the allowed methods.
 */
@Controller()
export class FallbackController {
  constructor(private readonly routePolicies: RoutePolicies) {}

  @All(FALLBACK_TEMPLATE)
  refuse(@Req() request: Request, @Res() response: Response): void {
    const { head } = this.routePolicies.ofPath('GET', request.path);
    const methods = allowedMethods(request.app, request.path, head);
    if (methods.length === 0) throw new DomainError('not_found', 'There is nothing here.');
    response.setHeader('Allow', [...methods, 'OPTIONS'].join(', '));
    if (request.method !== 'OPTIONS') {
      throw new DomainError('method_not_allowed', `This URL allows only ${methods.join(', ')}.`);
    }
    response.status(204).end();
  }
}
