/**
 * The number of executions of each block of the instrumented code, saturated at 255, and the blocks
 * that earlier inputs reached.
 */
export class Coverage {
  /** The counters, to which the instrumented code adds. */
  readonly counters: Uint8ClampedArray;
  readonly #words: Uint32Array;
  /** The classes of counts that were seen for each block, as bits. */
  readonly #seen: Uint8Array;
  /** The number of pairs of a block and a class of counts that were seen. */
  features = 0;

  constructor(readonly blocks: number) {
    const bytes = Math.ceil((blocks + 1) / 4) * 4;
    const memory = new ArrayBuffer(bytes);
    this.counters = new Uint8ClampedArray(memory);
    this.#words = new Uint32Array(memory);
    this.#seen = new Uint8Array(bytes);
  }

  /** The number of blocks that were reached at least once. */
  get reached(): number {
    return this.#seen.reduce((sum, classes) => sum + (classes === 0 ? 0 : 1), 0);
  }

  /**
   * Adds the counters of one execution to what was seen, and sets them to zero.
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

  /** Forgets what was seen. */
  reset(): void {
    this.counters.fill(0);
    this.#seen.fill(0);
    this.features = 0;
  }
}

/** Returns the class of a count as one bit, so that each further iteration is no new feature. */
function classOf(count: number): number {
  if (count < 4) return count === 0 ? 0 : 1 << (count - 1);
  if (count < 8) return 8;
  if (count < 16) return 16;
  if (count < 32) return 32;
  return count < 128 ? 64 : 128;
}
