import { Clock, systemClock } from '../../src/platform/clock/clock.js';
import { TestClock } from './test-clock.js';

/** The shortest wait that {@link clockWithoutPolls} makes endless, in milliseconds. */
const POLL = 1_000;

class ClockWithoutPolls extends Clock {
  readonly #still = new TestClock();

  override milliseconds(): number {
    return systemClock.milliseconds();
  }

  override monotonic(): number {
    return systemClock.monotonic();
  }

  override sleep(
    milliseconds: number,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    const clock = milliseconds < POLL ? systemClock : this.#still;
    return clock.sleep(milliseconds, options);
  }
}

/**
 * The clock of the machine, except that a wait of a second or longer lasts until it is aborted. So
 * workers never poll the database, and run only if a request wakes them. A test can change a rule
 * by SQL, and try what the rule refuses before a worker ends older access.
 */
export const clockWithoutPolls: Clock = new ClockWithoutPolls();
