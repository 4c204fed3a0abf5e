import { Module, type DynamicModule, type Type } from '@nestjs/common';
import { APP_FILTER, APP_GUARD } from '@nestjs/core';
import { ErrorFilter } from '#platform/errors/error.filter.js';
import { RateLimitModule } from '#platform/rate-limit/rate-limit.module.js';
import { TierGuard } from '#platform/rate-limit/tier.guard.js';
import { AccessGuard } from './access/access.guard.js';
import { BodyGuard } from './body/body.guard.js';
import { DeclaredSizeGuard } from './body/declared-size.guard.js';
import { HttpModule } from './http.module.js';
import { PageVisitors } from './access/page-visitors.service.js';
import { OriginRule } from './access/origin-rule.service.js';

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
