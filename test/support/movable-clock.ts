import { Clock, systemClock } from '../../src/platform/clock/clock.js';

/**
 * The clock of the machine, which a test can move forward. In between it runs as usual, so that
 * time limits of the application also end by themselves.
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

  /** Moves the time of day and the monotonic clock forward by some milliseconds. */
  advance(milliseconds: number): void {
    this.#ahead += milliseconds;
  }
}
