import type { Clock } from '#platform/clock/clock.js';

/**
 * Calls a function for frequent events, such as commits, at most once in an interval. The function
 * is called at once, or at the end of the interval that the last call began. So it is called after
 * every event, and no later than one interval after it.
 */
export class SpacedCalls {
  readonly #stopping = new AbortController();
  #calledAt = Number.NEGATIVE_INFINITY;
  #isScheduled = false;

  /**
   * @param interval the fewest milliseconds between two calls
   * @param act the function to call, which must not throw
   */
  constructor(
    private readonly clock: Clock,
    private readonly interval: number,
    private readonly act: () => void,
  ) {}

  /** Notes an event: calls the function now, or later if the last call is too recent. */
  note(): void {
    const { signal } = this.#stopping;
    if (this.#isScheduled || signal.aborted) return;
    const left = this.#calledAt + this.interval - this.clock.monotonic();
    if (left <= 0) {
      this.#call();
      return;
    }
    this.#isScheduled = true;
    this.clock.sleep(left, { signal }).then(
      () => this.#call(),
      () => undefined, // stopped
    );
  }

  /** Drops a call that is scheduled. No call follows. */
  stop(): void {
    this.#stopping.abort();
  }

  #call(): void {
    this.#isScheduled = false;
    this.#calledAt = this.clock.monotonic();
    this.act();
  }
}
