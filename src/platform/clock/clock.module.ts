import { Global, Module, type DynamicModule } from '@nestjs/common';
import { Clock, systemClock } from './clock.js';
import { Random, systemRandom } from './random.js';

/** Provides the clock and the random generator to every module. */
@Global()
@Module({})
export class ClockModule {
  /**
   * @param clock the clock of the machine by default; a test passes a clock that stands still until
   *   the test advances it
   */
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
