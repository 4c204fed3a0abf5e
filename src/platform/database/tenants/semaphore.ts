/**
 * A counting semaphore: at most `permits` callers have a permit at the same time. Waiting callers
 * get a permit in the order of their calls.
 */
export class Semaphore {
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(readonly permits: number) {
    this.#free = permits;
  }

  /** True if no permit is taken. */
  get isIdle(): boolean {
    return this.#free === this.permits;
  }

  /**
   * Takes a permit. If none is free, waits at most `milliseconds` for a free permit.
   * @returns a function that releases the permit, to be called once; undefined if no permit became
   *   available in time
   */
  take(milliseconds: number): Promise<(() => void) | undefined> {
    const giveBack = () => this.#giveBack();
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve(giveBack);
    }
    return new Promise((resolve) => {
      const served = () => {
        clearTimeout(timer);
        resolve(giveBack);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(served);
        resolve(undefined);
      }, milliseconds);
      this.#waiting.add(served);
    });
  }

  #giveBack(): void {
    const [next] = this.#waiting;
    if (next) {
      this.#waiting.delete(next);
      next();
    } else this.#free += 1;
  }
}
