import { Clock, systemClock } from '../../src/platform/clock/clock.js';
import { TestClock } from './test-clock.js';

/** The shortest wait that {@link clockWithoutPolls} prolongs, in milliseconds. */
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
 * The clock of the machine, except that a wait of a second or longer lasts until it is aborted. An
 * application with this clock reads a queue of the database when a request wakes its worker, and at
 * no other time. A test that changes a rule by SQL can so try what the change refuses before a
 * worker ends what the change leaves behind.
 */
export const clockWithoutPolls: Clock = new ClockWithoutPolls();
