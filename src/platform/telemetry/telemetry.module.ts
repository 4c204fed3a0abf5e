import { Module, type DynamicModule } from '@nestjs/common';
import { LoggerModule } from 'nestjs-pino';
import type { Logger } from 'pino';
import { nestPinoParams } from './pino-options.js';
import type { Tracing } from './open-telemetry.js';
import { ServiceMetrics } from './service-metrics.service.js';

/**
 * Provides structured logs by nestjs-pino, and the metrics. The steps that log and count requests,
 * in `application-log.ts` and `request-metrics.ts`, run before the router.
 */
@Module({})
export class TelemetryModule {
  static forRoot(logger: Logger): DynamicModule {
    return {
      module: TelemetryModule,
      global: true,
      imports: [LoggerModule.forRoot({ ...nestPinoParams(logger), forRoutes: [] })],
      providers: [ServiceMetrics],
      exports: [LoggerModule, ServiceMetrics],
    };
  }
}

/**
 * Stops tracing when the application stops: Nest calls `onApplicationShutdown` of {@link Tracing}.
 * Only production uses this module.
 */
@Module({})
export class TracingModule {
  static forRoot(tracing: Tracing): DynamicModule {
    return {
      module: TracingModule,
      providers: [{ provide: Symbol('Tracing'), useValue: tracing }],
    };
  }
}
