/** Those that run for one key, and those that wait for them. */
interface Turns {
  running: number;
  readonly waiting: (() => void)[];
}

/** Lets so many run at a time for each key; the others wait in the order in which they came. */
export class TurnsByKey {
  readonly #keys = new Map<string, Turns>();

  async run<T>(key: string, most: number, work: () => Promise<T>): Promise<T> {
    const turns = this.#keys.get(key) ?? { running: 0, waiting: [] };
    this.#keys.set(key, turns);
    if (turns.running < most) turns.running += 1;
    else await new Promise<void>((resolve) => turns.waiting.push(resolve));
    try {
      return await work();
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
