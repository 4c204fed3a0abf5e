import { Module, type DynamicModule, type Type } from '@nestjs/common';
import { APP_FILTER, APP_GUARD } from '@nestjs/core';
import { ProblemJsonFilter } from '#platform/errors/problem-json.filter.js';
import { AccessGuard } from './access.guard.js';
import { BodyGuard } from './body.guard.js';
import { HttpModule } from './http.module.js';
import { OriginRule } from './origin-rule.service.js';

/**
 * What every request meets around its handler: the access rule, then the body, then the handler; and the error filter
 * for whatever any of them throws.
 */
@Module({})
export class EdgeModule {
  /** @param accessPolicy the module that exports the AccessPolicy: who is who is not the platform's to know */
  static forRoot(accessPolicy: Type): DynamicModule {
    return {
      module: EdgeModule,
      imports: [HttpModule, accessPolicy],
      providers: [
        OriginRule,
        { provide: APP_GUARD, useClass: AccessGuard },
        { provide: APP_GUARD, useClass: BodyGuard },
        { provide: APP_FILTER, useClass: ProblemJsonFilter },
      ],
    };
  }
}
