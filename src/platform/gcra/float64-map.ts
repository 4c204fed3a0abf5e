const FIRST_SLOTS = 2 ** 11;

/**
 * The factor by which the table grows, a power of two. Few large steps leave less garbage than many
 * small ones.
 */
const GROWTH = 4;

/**
 * A map from numbers to numbers in typed arrays, with 16 bytes for each slot. A million entries
 * take 32 MB, a fifth of a `Map` of strings, and the garbage collector has no entries to visit. The
 * map only grows; no entry is removed.
 *
 * It uses open addressing with linear probing. A key is its own hash, so its low bits must be
 * evenly spread.
 */
export class Float64Map {
  #keys = new Float64Array(FIRST_SLOTS); // the key 0 marks an empty slot
  #values = new Float64Array(FIRST_SLOTS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /**
   * Returns the value of a key; undefined if the map does not have it.
   * @param key a whole number above 0
   */
  get(key: number): number | undefined {
    const slot = this.#slotOf(key);
    return this.#keys[slot] === key ? this.#values[slot] : undefined;
  }

  /**
   * Sets the value of a key.
   * @param key a whole number above 0
   */
  set(key: number, value: number): void {
    let slot = this.#slotOf(key);
    if (this.#keys[slot] !== key) {
      if (4 * this.#size >= 3 * this.#keys.length) {
        this.#grow();
        slot = this.#slotOf(key);
      }
      this.#keys[slot] = key;
      this.#size += 1;
    }
    this.#values[slot] = value;
  }

  /**
   * Returns the slot of a key. If the map does not have the key, it returns the empty slot for it.
   */
  #slotOf(key: number): number {
    const last = this.#keys.length - 1; // all bits are 1, because the length is a power of two
    let slot = key & last;
    while (this.#keys[slot] !== key && this.#keys[slot] !== 0) slot = (slot + 1) & last;
    return slot;
  }

  #grow(): void {
    const [keys, values] = [this.#keys, this.#values];
    this.#keys = new Float64Array(GROWTH * keys.length);
    this.#values = new Float64Array(GROWTH * keys.length);
    for (let old = 0; old < keys.length; old += 1) {
      const key = keys[old] ?? 0;
      if (key === 0) continue;
      const slot = this.#slotOf(key);
      this.#keys[slot] = key;
      this.#values[slot] = values[old] ?? 0;
    }
  }
}
