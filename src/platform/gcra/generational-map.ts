/** The storage of the entries of one generation: a `Map`, or a structure that needs less memory. */
interface Generation<Key, Value> {
  readonly size: number;
  get(key: Key): Value | undefined;
  set(key: Key, value: Value): unknown;
}

/**
 * A map whose entries expire: an entry is kept for at least `lifetime` after it was set, and for
 * less than twice that time.
 *
 * It has two generations. New entries go to the young generation, which later becomes the old one.
 * The old generation is dropped as a whole. So expiry needs no timer, and its cost does not depend
 * on the number of entries.
 */
export class GenerationalMap<Key, Value> {
  #young: Generation<Key, Value>;
  #old: Generation<Key, Value>;
  #turned = -Infinity;

  /**
   * @param lifetime the shortest time for which an entry is kept, in the unit of the parameter
   *   `now` of the other methods. The clock of `now` must never go backwards
   */
  constructor(
    private readonly lifetime: number,
    private readonly newGeneration: () => Generation<Key, Value>,
  ) {
    this.#young = newGeneration();
    this.#old = newGeneration();
  }

  /**
   * The number of entries; an entry in both generations counts twice. If the caller adds new keys
   * only while this number is below a limit, neither generation exceeds the limit.
   */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get(key: Key, now: number): Value | undefined {
    this.#turn(now);
    return this.#young.get(key) ?? this.#old.get(key);
  }

  set(key: Key, value: Value, now: number): void {
    this.#turn(now);
    this.#young.set(key, value);
  }

  #turn(now: number): void {
    const age = now - this.#turned;
    if (age < this.lifetime) return;
    this.#old = age < 2 * this.lifetime ? this.#young : this.newGeneration();
    this.#young = this.newGeneration();
    this.#turned = now;
  }
}
