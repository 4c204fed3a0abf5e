import { Module, type DynamicModule } from '@nestjs/common';
import { LoggerModule } from 'nestjs-pino';
import type { Logger } from 'pino';
import { nestPinoParams } from './pino-options.js';

/** Structured logs by nestjs-pino. The middleware of application-log.ts binds lines to their request, before routing. */
@Module({})
export class TelemetryModule {
  static forRoot(logger: Logger): DynamicModule {
    return {
      module: TelemetryModule,
      global: true,
      imports: [LoggerModule.forRoot({ ...nestPinoParams(logger), forRoutes: [] })],
      exports: [LoggerModule],
    };
  }
}
