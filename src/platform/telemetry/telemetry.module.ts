import { Module, type DynamicModule } from '@nestjs/common';
import { LoggerModule } from 'nestjs-pino';
import type { Logger } from 'pino';
import { nestPinoParams } from './pino-options.js';
import { ServiceMetrics } from './service-metrics.service.js';

/**
 * Structured logs by nestjs-pino, and the metrics. The steps of application-log.ts and request-metrics.ts see every request,
 * before routing.
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
