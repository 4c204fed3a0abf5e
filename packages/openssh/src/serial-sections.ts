/**
 * Runs of serials; a run consists of serials without a gap. The runs are two arrays of numbers and
 * not objects, for speed: a list of 100,000 serials is encoded after each change.
 */
export interface SerialRuns {
  /** The first serial of each run, ascending. */
  readonly low: Float64Array;
  /** The last serial of each run. */
  readonly high: Float64Array;
}

/** An empty set of runs, which contains no serial. */
export const NO_RUNS: SerialRuns = { low: new Float64Array(), high: new Float64Array() };

/**
 * The ways in which a section of a key revocation list can contain serials (OpenSSH PROTOCOL.krl,
 * KRL_SECTION_CERT_SERIAL_*).
 */
export type SerialEncoding = 'list' | 'range' | 'bitmap';

/** A section of a key revocation list: its runs, and the way in which it contains them. */
export interface SerialSection extends SerialRuns {
  readonly encoding: SerialEncoding;
}

const ENCODINGS = ['list', 'range', 'bitmap'] as const satisfies readonly SerialEncoding[];
const [LIST, RANGE, BITMAP] = [0, 1, 2]; // the index of each encoding in ENCODINGS

/**
 * The largest number of bits of a bitmap. A bitmap is encoded as a multi-precision integer, and
 * OpenSSH refuses a longer integer.
 */
const LONGEST_BITMAP = 16_384;

// The size of each encoding in bits. Before its content, a section has 8 bits for its type and 32
// bits for its length.
const SECTION = 8 + 32;
const SERIAL = 64;
const RANGE_SECTION = SECTION + 2 * SERIAL;
// A bitmap also has its first serial, the length of the integer, and at most one byte of padding.
const BITMAP_SECTION = SECTION + SERIAL + 32 + 8;

/**
 * Collects serials into runs, which are serials without a gap.
 *
 * @param serials ascending and without duplicates
 * @throws RangeError for serials that are not whole numbers in this order. OpenSSH could read a
 *   list of them, but would revoke other serials
 */
export function serialRuns(serials: ArrayLike<number>): SerialRuns {
  const low = new Float64Array(serials.length);
  const high = new Float64Array(serials.length);
  let last = -1;
  let before = -1; // no serial, so that a first serial of 0 also begins a run
  for (let index = 0; index < serials.length; index += 1) {
    const serial = serials[index] ?? 0;
    if (!Number.isSafeInteger(serial) || serial <= before) {
      throw new RangeError('the serials are not whole numbers in ascending order');
    }
    if (last < 0 || serial > before + 1) low[(last += 1)] = serial;
    high[last] = before = serial;
  }
  return { low: low.subarray(0, last + 1), high: high.subarray(0, last + 1) };
}

/**
 * Merges two sets of runs of serials. The runs of each must be in the order of their first serials.
 * The result contains each serial once.
 */
export function joinRuns(one: SerialRuns, other: SerialRuns): SerialRuns {
  const low = new Float64Array(one.low.length + other.low.length);
  const high = new Float64Array(low.length);
  let last = -1;
  let [left, right] = [0, 0];
  while (left + right < low.length) {
    const isLeft = (one.low[left] ?? Infinity) <= (other.low[right] ?? Infinity);
    const first = (isLeft ? one.low[left] : other.low[right]) ?? 0;
    const end = (isLeft ? one.high[left++] : other.high[right++]) ?? 0;
    const before = high[last] ?? -Infinity;
    if (first <= before + 1) high[last] = Math.max(before, end);
    else {
      low[(last += 1)] = first;
      high[last] = end;
    }
  }
  return { low: low.subarray(0, last + 1), high: high.subarray(0, last + 1) };
}

/**
 * Divides serials into sections so that the total size is the smallest possible. Scattered serials
 * become a list, many without a gap a range, and serials that are close to each other a bitmap. The
 * function needs one pass over the runs. For each run, it computes the smallest size of all runs so
 * far, once for each of the three ways to encode this run. It records the choices that led to these
 * sizes.
 */
export function chooseSections({ low, high }: SerialRuns): SerialSection[] {
  const chosen = new Uint8Array(low.length); // the index of the cheapest encoding for each run
  // An element is 1 if the list or the bitmap of its run continues that of the previous run.
  const joinsList = new Uint8Array(low.length);
  const joinsBitmap = new Uint8Array(low.length);
  let cheapest = 0;
  let list = Infinity;
  let bitmap = Infinity;
  let bitmapStart = 0;
  for (let run = 0; run < low.length; run += 1) {
    const first = low[run] ?? 0;
    const last = high[run] ?? 0;
    const length = last - first + 1;

    const range = cheapest + RANGE_SECTION;

    if (list < cheapest + SECTION) joinsList[run] = 1;
    list = Math.min(list, cheapest + SECTION) + SERIAL * length;

    const joined =
      last - bitmapStart < LONGEST_BITMAP ? bitmap + last - (high[run - 1] ?? 0) : Infinity;
    const begun = length <= LONGEST_BITMAP ? cheapest + BITMAP_SECTION + length : Infinity;
    if (joined < begun) joinsBitmap[run] = 1;
    else bitmapStart = first;
    bitmap = Math.min(joined, begun);

    cheapest = Math.min(range, list, bitmap);
    chosen[run] = cheapest === range ? RANGE : cheapest === list ? LIST : BITMAP;
  }

  const sections: SerialSection[] = [];
  for (let end = low.length; end > 0;) {
    const encoding = ENCODINGS[chosen[end - 1] ?? LIST] ?? 'list';
    const joins = { list: joinsList, bitmap: joinsBitmap, range: undefined }[encoding];
    let start = end - 1;
    while (joins?.[start] === 1) start -= 1;
    sections.push({ encoding, low: low.subarray(start, end), high: high.subarray(start, end) });
    end = start;
  }
  return sections.toReversed();
}
