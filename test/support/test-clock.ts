import { Clock } from '../../src/platform/clock/clock.js';

/** A clock that stands still until a test advances it. */
export class TestClock extends Clock {
  readonly #sleepers = new Set<{ readonly until: number; readonly wake: () => void }>();

  /**
   * @param time the time of day at the start, in milliseconds since 1970
   * @param elapsed the time of the monotonic clock at the start, in milliseconds
   */
  constructor(
    private time = 1_767_225_600_000,
    private elapsed = 0,
  ) {
    super();
  }

  override milliseconds(): number {
    return this.time;
  }

  override monotonic(): number {
    return this.elapsed;
  }

  override sleep(
    milliseconds: number,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = () => {
      reject(new DOMException('The sleep was aborted.', 'AbortError'));
    };
    if (signal?.aborted === true) stop();
    signal?.addEventListener('abort', stop, { once: true });
    this.#sleepers.add({ until: this.elapsed + milliseconds, wake: resolve });
    return promise;
  }

  /**
   * Moves both clocks (time of day and monotonic) forward by some milliseconds, and ends each sleep
   * that is over by then.
   */
  advance(milliseconds: number): void {
    this.time += milliseconds;
    this.elapsed += milliseconds;
    for (const sleeper of this.#sleepers) {
      if (sleeper.until > this.elapsed) continue;
      this.#sleepers.delete(sleeper);
      sleeper.wake();
    }
  }
}
