import { Global, Module, type DynamicModule } from '@nestjs/common';
import { Clock, systemClock } from './clock.js';
import { Random, systemRandom } from './random.js';

/** Provides the clock and the random generator to every module. */
@Global()
@Module({})
export class ClockModule {
  /** @param clock that of the machine, unless a test passes one that it moves */
  static forRoot(clock: Clock = systemClock): DynamicModule {
    return {
      module: ClockModule,
      providers: [
        { provide: Clock, useValue: clock },
        { provide: Random, useValue: systemRandom },
      ],
      exports: [Clock, Random],
    };
  }
}
