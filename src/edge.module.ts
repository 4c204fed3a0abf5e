import { Module, type DynamicModule, type Type } from '@nestjs/common';
import { APP_FILTER, APP_GUARD } from '@nestjs/core';
import { ErrorFilter } from '#platform/http/errors/error.filter.js';
import { HttpModule } from '#platform/http/http.module.js';
import { RouteGuard } from '#platform/http/route.guard.js';
import { FallbackController } from '#platform/http/routing/fallback.controller.js';
import { RateLimitModule } from '#platform/rate-limit/rate-limit.module.js';
import { TierGuard } from '#platform/rate-limit/tier.guard.js';

/**
 * Puts the rate limit and the rules of routes in front of every handler, and adds the error filter
 * for what a handler throws.
 */
@Module({})
export class EdgeModule {
  /**
   * @param accessPolicy the module that exports the AccessPolicy, which decides which callers a
   *   route admits; `domain/sessions` implements it, because the platform knows no users
   */
  static forRoot(accessPolicy: Type): DynamicModule {
    return {
      module: EdgeModule,
      imports: [HttpModule, RateLimitModule, accessPolicy],
      providers: [
        { provide: APP_GUARD, useClass: TierGuard },
        { provide: APP_GUARD, useClass: RouteGuard },
        { provide: APP_FILTER, useClass: ErrorFilter },
      ],
    };
  }
}

/**
 * Handles every request that matches no other route. It must be the last of all modules, because
 * the router tries the modules in their order.
 */
@Module({ imports: [HttpModule], controllers: [FallbackController] })
export class FallbackModule {}
