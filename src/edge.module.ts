import { Module, type DynamicModule, type Type } from '@nestjs/common';
import { APP_FILTER, APP_GUARD } from '@nestjs/core';
import { ErrorFilter } from '#platform/http/errors/error.filter.js';
import { RateLimitModule } from '#platform/rate-limit/rate-limit.module.js';
import { TierGuard } from '#platform/rate-limit/tier.guard.js';
import { AccessGuard } from './platform/http/access/access.guard.js';
import { BodyGuard } from './platform/http/body/body.guard.js';
import { DeclaredSizeGuard } from './platform/http/body/declared-size.guard.js';
import { HttpModule } from './platform/http/http.module.js';
import { PageVisitors } from './platform/http/access/page-visitors.service.js';
import { OriginRule } from './platform/http/access/origin-rule.service.js';

/**
 * What every request meets around its handler: the rate limit, the size its body declares, the access rule, the body, then
 * the handler; and the error filter for whatever any of them throws.
 */
@Module({})
export class EdgeModule {
  /** @param accessPolicy the module that exports the AccessPolicy: who is who is not the platform's to know */
  static forRoot(accessPolicy: Type): DynamicModule {
    return {
      module: EdgeModule,
      imports: [HttpModule, RateLimitModule, accessPolicy],
      providers: [
        OriginRule,
        PageVisitors,
        { provide: APP_GUARD, useClass: TierGuard },
        { provide: APP_GUARD, useClass: DeclaredSizeGuard },
        { provide: APP_GUARD, useClass: AccessGuard },
        { provide: APP_GUARD, useClass: BodyGuard },
        { provide: APP_FILTER, useClass: ErrorFilter },
      ],
    };
  }
}
