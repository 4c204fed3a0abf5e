import { Clock, systemClock } from '../../src/platform/clock/clock.js';

/**
 * The clock of the machine, which a test moves forward: an application goes on by itself, and no
 * test waits.
 */
export class MovableClock extends Clock {
  #ahead = 0;

  override milliseconds(): number {
    return systemClock.milliseconds() + this.#ahead;
  }

  override monotonic(): number {
    return systemClock.monotonic() + this.#ahead;
  }

  override sleep(...parameters: Parameters<Clock['sleep']>): Promise<void> {
    return systemClock.sleep(...parameters);
  }

  /** Moves both clocks forward by so many milliseconds. */
  advance(milliseconds: number): void {
    this.#ahead += milliseconds;
  }
}
