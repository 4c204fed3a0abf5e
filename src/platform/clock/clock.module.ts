import { Global, Module } from '@nestjs/common';
import { Clock, systemClock } from './clock.js';
import { Random, systemRandom } from './random.js';

/** Provides the clock and the random generator to every module. */
@Global()
@Module({
  providers: [
    { provide: Clock, useValue: systemClock },
    { provide: Random, useValue: systemRandom },
  ],
  exports: [Clock, Random],
})
export class ClockModule {}
