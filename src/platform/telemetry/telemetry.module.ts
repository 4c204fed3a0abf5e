import { Module, type DynamicModule } from '@nestjs/common';
import { LoggerModule } from 'nestjs-pino';
import type { Logger } from 'pino';
import { nestPinoParams } from './pino-options.js';

/** Structured logs by nestjs-pino. What binds lines to their request is the middleware of
 * application-log.ts, before any routing. */
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
