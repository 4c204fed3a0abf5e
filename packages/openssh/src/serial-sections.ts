/**
 * Serials that follow one another without a gap are a run. Runs lie in two columns rather than in
 * objects: a list of 100,000 serials is written for each new set.
 */
export interface SerialRuns {
  /** The first serial of each run, ascending … */
  readonly low: Float64Array;
  /** … and its last. */
  readonly high: Float64Array;
}

/** No serials. */
export const NO_RUNS: SerialRuns = { low: new Float64Array(), high: new Float64Array() };

/**
 * How a section of a key revocation list writes serials (OpenSSH PROTOCOL.krl,
 * KRL_SECTION_CERT_SERIAL_*).
 */
export type SerialEncoding = 'list' | 'range' | 'bitmap';

/** A section: which runs it writes, and how. */
export interface SerialSection extends SerialRuns {
  readonly encoding: SerialEncoding;
}

const ENCODINGS = ['list', 'range', 'bitmap'] as const satisfies readonly SerialEncoding[];
const [LIST, RANGE, BITMAP] = [0, 1, 2]; // their places in it

/** OpenSSH reads no longer multi-precision integer, and a bitmap is one. */
const LONGEST_BITMAP = 16_384;

// What each encoding costs, in bits. A section is a byte and a length before its content.
const SECTION = 8 + 32;
const SERIAL = 64;
const RANGE_SECTION = SECTION + 2 * SERIAL;
// its offset, the length of the integer, at most one byte of padding
const BITMAP_SECTION = SECTION + SERIAL + 32 + 8;

/**
 * Joins serials that follow one another.
 *
 * @param serials ascending, none twice
 * @throws RangeError if they are not: such a list would be read, and revoke something else
 */
export function serialRuns(serials: ArrayLike<number>): SerialRuns {
  const low = new Float64Array(serials.length);
  const high = new Float64Array(serials.length);
  let last = -1;
  let before = -1; // no serial: 0 begins a run, like any other first one
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
 * Joins two columns of runs, each in the order of its first serials, so that each serial is in one.
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
 * Divides serials into sections so that all of them together are as small as can be: a list for
 * scattered serials, a range for many in a row, a bitmap for serials that lie close. One pass: up
 * to each run it knows the cheapest way to write everything, if that run is written as a list, as a
 * range or in a bitmap, and what it was made of.
 */
export function chooseSections({ low, high }: SerialRuns): SerialSection[] {
  const chosen = new Uint8Array(low.length); // the cheapest of the three, for each run …
  // … and whether its list or bitmap goes on from the run before
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
