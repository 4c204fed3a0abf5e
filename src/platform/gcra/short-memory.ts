/** What a memory keeps a generation in: a `Map`, or something leaner. */
interface Generation<Key, Value> {
  readonly size: number;
  get(key: Key): Value | undefined;
  set(key: Key, value: Value): unknown;
}

/**
 * A map that forgets what was not set for a while: nothing before `lifetime` is over, everything once it is over twice.
 *
 * Two generations take turns, and the elder is dropped as a whole: forgetting costs nothing, however much there is, and
 * needs no timer.
 */
export class ShortMemory<Key, Value> {
  #young: Generation<Key, Value>;
  #old: Generation<Key, Value>;
  #turned = -Infinity;

  /** @param lifetime in the unit of every `now` that follows; those never go backwards */
  constructor(
    private readonly lifetime: number,
    private readonly newGeneration: () => Generation<Key, Value>,
  ) {
    this.#young = newGeneration();
    this.#old = newGeneration();
  }

  /**
   * How many are remembered; what was set in both generations counts twice. If newcomers come only while this is below a
   * limit, neither generation ever outgrows it: beyond, the young one takes over what is in the old one, and no more.
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
