/**
 * For one key, the number of pieces of work that run, and the functions that let waiting callers
 * begin.
 */
interface Turns {
  running: number;
  readonly waiting: (() => void)[];
}

/**
 * A semaphore for each key. It limits how much work of one key runs at the same time. Waiting
 * callers are served in the order of their calls.
 */
export class KeyedSemaphore {
  readonly #keys = new Map<string, Turns>();

  /** Returns true if any work of this key runs. */
  isRunning(key: string): boolean {
    return this.#keys.has(key);
  }

  /**
   * Waits until fewer than `most` pieces of work of this key run, and then runs the work. The work
   * learns how many pieces of work of its key run now, itself included.
   */
  async run<T>(key: string, most: number, work: (running: number) => Promise<T>): Promise<T> {
    const turns = this.#keys.get(key) ?? { running: 0, waiting: [] };
    this.#keys.set(key, turns);
    if (turns.running < most) turns.running += 1;
    else await new Promise<void>((resolve) => turns.waiting.push(resolve));
    try {
      return await work(turns.running);
    } finally {
      const next = turns.waiting.shift();
      if (next) next();
      else this.#leave(key, turns);
    }
  }

  #leave(key: string, turns: Turns): void {
    turns.running -= 1;
    if (turns.running === 0) this.#keys.delete(key);
  }
}
