/**
 * Counts how often an input executes each block of the instrumented code (up to 255), and remembers
 * which features earlier inputs had. A feature is a block with a class of its count.
 */
export class Coverage {
  /** The counter of each block, which the instrumented code increments. */
  readonly counters: Uint8ClampedArray;
  readonly #words: Uint32Array;
  /** For each block, the classes of counts that were seen. Each class is one bit. */
  readonly #seen: Uint8Array;
  /** The number of features that were seen so far. */
  features = 0;

  constructor(readonly blocks: number) {
    const bytes = Math.ceil((blocks + 1) / 4) * 4;
    const memory = new ArrayBuffer(bytes);
    this.counters = new Uint8ClampedArray(memory);
    this.#words = new Uint32Array(memory);
    this.#seen = new Uint8Array(bytes);
  }

  /** The number of blocks that at least one input executed. */
  get reached(): number {
    return this.#seen.reduce((sum, classes) => sum + (classes === 0 ? 0 : 1), 0);
  }

  /**
   * Adds the features of one execution to the seen ones, and sets the counters to zero.
   *
   * @returns the number of features that no earlier execution had
   */
  collect(): number {
    let found = 0;
    const words = this.#words;
    for (let word = 0; word < words.length; word += 1) {
      if (words[word] === 0) continue;
      for (let at = 4 * word; at < 4 * word + 4; at += 1) {
        const bit = classOf(this.counters[at] ?? 0);
        const seen = this.#seen[at] ?? 0;
        if ((seen & bit) === bit) continue;
        this.#seen[at] = seen | bit;
        found += 1;
      }
      words[word] = 0;
    }
    this.features += found;
    return found;
  }

  /** Forgets all features, and sets the counters to zero. */
  reset(): void {
    this.counters.fill(0);
    this.#seen.fill(0);
    this.features = 0;
  }
}

/**
 * Returns the class of a count as one bit: 1, 2, 3, 4–7, 8–15, 16–31, 32–127 or more. Classes are
 * wide, so that one more iteration of a loop is seldom a new feature.
 */
function classOf(count: number): number {
  if (count < 4) return count === 0 ? 0 : 1 << (count - 1);
  if (count < 8) return 8;
  if (count < 16) return 16;
  if (count < 32) return 32;
  return count < 128 ? 64 : 128;
}
