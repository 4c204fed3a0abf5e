import { encodeKeyRevocationList, sshStrings } from '@svc/openssh';
import { rule, type FuzzTarget } from '../../engine/target.js';
import { readRevocations } from '../../readers/revoked-serials.js';

const AUTHORITIES = [1, 2].map((byte) => sshStrings(['ssh-ed25519', Buffer.alloc(32, byte)]));
const MOST_SERIALS = 2_000;

/**
 * Ranges of serials: the first and the last serial of each range. They are made from groups of 4
 * bytes. Three bytes give the gap before a range, and the fourth one gives its length.
 */
interface Runs {
  readonly low: number[];
  readonly high: number[];
}

export const target: FuzzTarget = {
  parser: 'encodeKeyRevocationList, joinRuns, chooseSections',
  seeds: [
    '00010001000100010001000200050001',
    '0201ff0300050100030001ff',
    '01000001020000400300000001000400',
    'ff000001',
  ].map((hex) => Buffer.from(hex, 'hex')),
  dictionary: ['02000100', '010000ff', '03ffff01', 'ff', '0001'].map((hex) =>
    Buffer.from(hex, 'hex'),
  ),
  longest: 256,
  run(input) {
    const third = Math.floor(input.length / 12) * 4;
    const parts = [0, 1, 2].map((part) => runsOf(input.subarray(part * third, (part + 1) * third)));
    const [ranges = emptyRuns(), ...listed] = parts;
    const list = encodeKeyRevocationList({
      number: 7n,
      generatedAt: new Date(0),
      comment: '',
      ranges: { low: Float64Array.from(ranges.low), high: Float64Array.from(ranges.high) },
      authorities: AUTHORITIES.map((authority, index) => ({
        authority,
        serials: serialsOf(listed[index] ?? emptyRuns()),
      })),
    });
    const read = readRevocations(list);
    AUTHORITIES.forEach((authority, index) => {
      const expected = union(ranges, listed[index] ?? emptyRuns());
      const found = read.authorities.find((one) => one.authority.equals(authority))?.runs ?? [];
      rule(String(found) === String(expected), 'OpenSSH would revoke other certificates');
    });
    return true;
  },
};

function emptyRuns(): Runs {
  return { low: [], high: [] };
}

/** Makes ascending ranges of serials from the bytes of an input. */
function runsOf(bytes: Buffer): Runs {
  const runs = emptyRuns();
  let next = 0;
  let count = 0;
  for (let at = 0; at + 4 <= bytes.length; at += 4) {
    const [size = 0, gap = 0, more = 0, length = 0] = bytes.subarray(at, at + 4);
    const first = next + (gap + 256 * more) * 256 ** (size % 4);
    const last = first + length;
    count += length + 1;
    if (count > MOST_SERIALS || !Number.isSafeInteger(last + 2)) break;
    runs.low.push(first);
    runs.high.push(last);
    next = last + 2;
  }
  return runs;
}

function serialsOf({ low, high }: Runs): number[] {
  return low.flatMap((first, run) =>
    Array.from({ length: (high[run] ?? first) - first + 1 }, (_, index) => first + index),
  );
}

/**
 * Returns the union of two sets of ranges as texts `first,last`. Ranges that touch or overlap are
 * joined.
 */
function union(one: Runs, other: Runs): string[] {
  const all = [one, other].flatMap(({ low, high }) =>
    low.map((first, run) => [first, high[run] ?? first] as [number, number]),
  );
  const result: [number, number][] = [];
  for (const [first, last] of all.toSorted(([left], [right]) => left - right)) {
    const before = result.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else result.push([first, last]);
  }
  return result.map(String);
}
