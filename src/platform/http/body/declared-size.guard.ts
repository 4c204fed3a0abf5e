import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { requestPath } from '#platform/http/contract/request-path.js';
import { bodyLimitOf, tooLarge } from './body-limits.js';

/**
 * Global, and right behind the rate limit: refuses a body that says itself that it is too large, before anybody asks who
 * sends it, or looks anything up.
 */
@Injectable()
export class DeclaredSizeGuard implements CanActivate {
  /** @throws DomainError body_too_large */
  canActivate(context: ExecutionContext): true {
    const request = context.switchToHttp().getRequest<Request>();
    const declared = request.headers['content-length'];
    if (declared === undefined) return true;
    const limit = bodyLimitOf(requestPath(request));
    if (Number(declared) > limit) throw tooLarge(limit);
    return true;
  }
}
