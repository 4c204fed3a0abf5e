/** Places that few may have at a time. Who waits is served in the order of coming. */
export class Turns {
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(readonly places: number) {
    this.#free = places;
  }

  /** Whether nobody has a place, and nobody waits for one. */
  get isIdle(): boolean {
    return this.#free === this.places;
  }

  /** @returns what gives the place back, to be called once; undefined when none was free in time */
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
