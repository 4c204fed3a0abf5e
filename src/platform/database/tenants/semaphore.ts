/**
 * A counting semaphore: at most `permits` callers have a permit at the same time. Waiting callers
 * get a permit in the order of their calls.
 */
export class Semaphore {
  /**
   * The functions that serve the waiting callers. It is no `Set`, because a `Set` that changes with
   * every request keeps the garbage of all requests alive (docs/performance/garbage.md).
   */
  readonly #waiting: (() => void)[] = [];
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
        this.#waiting.splice(this.#waiting.indexOf(served), 1);
        resolve(undefined);
      }, milliseconds);
      this.#waiting.push(served);
    });
  }

  #giveBack(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}
