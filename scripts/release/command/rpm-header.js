/* The kinds of values in a header of RPM, of <rpm/rpmtypes.h>. */
export const INT16 = 3;
export const INT32 = 4;
export const TEXT = 6;
export const TEXTS = 8;
export const LOCALIZED = 9;
const BYTES = 7;

const MAGIC = Buffer.from('8eade80100000000', 'hex');
const ENTRY_SIZE = 16;
const ALIGNMENT = { [INT16]: 2, [INT32]: 4 };

/**
 * A header of RPM: a list of tags, and their values. All tags are in one region, which shows that
 * no tag was added later.
 */
export class HeaderIndex {
  #entries = [];

  /** @param {number} region the tag of the region */
  constructor(region) {
    this.region = region;
  }

  /**
   * Adds a tag.
   *
   * @param {number} tag
   * @param {number} kind the kind of its value
   * @param {string | string[] | number[]} value
   */
  add(tag, kind, value) {
    this.#entries.push({ tag, kind, value });
  }

  /** Returns the bytes of the header, with the tags in their order. */
  bytes() {
    const entries = this.#entries.toSorted((one, other) => one.tag - other.tag);
    const indexes = [];
    const store = [];
    let offset = 0;
    for (const { tag, kind, value } of entries) {
      const alignment = ALIGNMENT[kind] ?? 1;
      const gap = (alignment - (offset % alignment)) % alignment;
      const data = dataOf(kind, value);
      indexes.push(entryOf(tag, kind, offset + gap, kind === TEXT ? 1 : value.length));
      store.push(Buffer.alloc(gap), data);
      offset += gap + data.length;
    }
    const count = entries.length + 1;
    const trailer = entryOf(this.region, BYTES, -count * ENTRY_SIZE, ENTRY_SIZE);
    const sizes = Buffer.alloc(8);
    sizes.writeUInt32BE(count, 0);
    sizes.writeUInt32BE(offset + ENTRY_SIZE, 4);
    const region = entryOf(this.region, BYTES, offset, ENTRY_SIZE);
    return Buffer.concat([MAGIC, sizes, region, ...indexes, ...store, trailer]);
  }
}

function entryOf(tag, kind, offset, count) {
  const entry = Buffer.alloc(ENTRY_SIZE);
  [tag, kind, offset, count].forEach((value, n) => entry.writeInt32BE(value, 4 * n));
  return entry;
}

function dataOf(kind, value) {
  if (kind === TEXT) return Buffer.from(`${value}\0`);
  if (kind === TEXTS || kind === LOCALIZED)
    return Buffer.concat(value.map((text) => Buffer.from(`${text}\0`)));
  const size = ALIGNMENT[kind];
  const data = Buffer.alloc(size * value.length);
  value.forEach((one, n) => {
    if (kind === INT16) data.writeUInt16BE(one, size * n);
    else data.writeInt32BE(one, size * n);
  });
  return data;
}
