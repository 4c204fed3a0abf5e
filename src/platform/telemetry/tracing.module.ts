import { Module, type DynamicModule } from '@nestjs/common';
import type { Tracing } from './tracing.js';

/** Ends tracing with the application: Nest calls its hook. Of the production composition alone. */
@Module({})
export class TracingModule {
  static forRoot(tracing: Tracing): DynamicModule {
    return {
      module: TracingModule,
      providers: [{ provide: Symbol('Tracing'), useValue: tracing }],
    };
  }
}
