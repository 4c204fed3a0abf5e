import { Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { equalInConstantTime } from '#platform/crypto/opaque-token.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { bearerSecret } from '#platform/http/access/bearer-secret.js';

/** The injection token of SVC_METRICS_BEARER_TOKEN. */
export const METRICS_TOKEN = Symbol('metrics token');

/** Lets in whoever presents the token. */
@Injectable()
export class MetricsGuard implements CanActivate {
  constructor(@Inject(METRICS_TOKEN) private readonly token: string) {}

  /** @throws DomainError unauthenticated */
  canActivate(context: ExecutionContext): true {
    const presented = bearerSecret(context.switchToHttp().getRequest<Request>());
    if (presented !== undefined && equalInConstantTime(presented, this.token)) return true;
    throw new DomainError('unauthenticated', 'Present the metrics token as a Bearer token.');
  }
}
