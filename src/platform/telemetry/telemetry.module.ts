import { Module, type DynamicModule } from '@nestjs/common';
import { LoggerModule } from 'nestjs-pino';
import type { Logger } from 'pino';
import { nestPinoParams } from './pino-options.js';
import type { Tracing } from './open-telemetry.js';
import { GATHER_METRICS, ServiceMetrics, type GatherMetrics } from './service-metrics.service.js';

/**
 * Provides structured logs by nestjs-pino, and the metrics. The steps that log and count requests,
 * in `application-log.ts` and `request-metrics.ts`, run before the router.
 */
@Module({})
export class TelemetryModule {
  /** @param gather returns the metrics of all workers; undefined in a process without workers */
  static forRoot(logger: Logger, gather?: GatherMetrics): DynamicModule {
    return {
      module: TelemetryModule,
      global: true,
      imports: [LoggerModule.forRoot({ ...nestPinoParams(logger), forRoutes: [] })],
      providers: [
        ServiceMetrics,
        ...(gather ? [{ provide: GATHER_METRICS, useValue: gather }] : []),
      ],
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
