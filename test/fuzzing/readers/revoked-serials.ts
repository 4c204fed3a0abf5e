import { SshReader } from '@svc/openssh';

const MAGIC = 'SSHKRL\n\0';
const CERTIFICATES = 1;

/** The content of a key revocation list, which OpenSSH's PROTOCOL.krl describes. */
export interface ReadRevocations {
  readonly number: bigint;
  /** The revoked serials of each authority, as ranges in ascending order. */
  readonly authorities: readonly {
    readonly authority: Buffer;
    readonly runs: readonly (readonly [first: bigint, last: bigint])[];
  }[];
}

/**
 * Reads a key revocation list, to check the one that the service writes. For that it shares no code
 * with the writer, except for the reader of lengths and integers.
 */
export function readRevocations(bytes: Buffer): ReadRevocations {
  const reader = new SshReader(bytes);
  if (reader.bytes(8).toString('latin1') !== MAGIC || reader.uint32() !== 1)
    throw new Error('header');
  const number = reader.uint64();
  reader.bytes(16); // skips the time and the flags
  reader.string();
  reader.string(); // skips the comment
  const authorities: ReadRevocations['authorities'][number][] = [];
  while (reader.offset < bytes.length) {
    if (reader.bytes(1)[0] !== CERTIFICATES) throw new Error('a section of another kind');
    const section = reader.string();
    const fields = new SshReader(section);
    const authority = fields.string();
    fields.string();
    authorities.push({ authority, runs: joined(sectionsIn(fields.rest())) });
  }
  return { number, authorities };
}

type Run = readonly [first: bigint, last: bigint];

function sectionsIn(bytes: Buffer): Run[] {
  const reader = new SshReader(bytes);
  const runs: Run[] = [];
  while (reader.offset < bytes.length) {
    const [type = 0] = reader.bytes(1);
    runs.push(...runsIn(type, reader.string()));
  }
  return runs;
}

function runsIn(type: number, content: Buffer): Run[] {
  const reader = new SshReader(content);
  if (type === 0x20) {
    const runs: Run[] = [];
    while (reader.offset < content.length) {
      const serial = reader.uint64();
      runs.push([serial, serial]);
    }
    return runs;
  }
  const first = reader.uint64();
  if (type === 0x21) return [[first, reader.uint64()]];
  if (type !== 0x22) throw new Error('serials of an unknown kind');
  const bitmap = reader.string();
  if (bitmap.length > 2049) throw new Error('a bitmap that OpenSSH does not read');
  if ((bitmap[0] ?? 0) >= 0x80) throw new Error('a bitmap that is a negative number');
  const bits = Array.from(bitmap.toReversed()).flatMap((byte, index) =>
    [0, 1, 2, 3, 4, 5, 6, 7].filter((bit) => (byte >> bit) & 1).map((bit) => 8 * index + bit),
  );
  return bits.map((bit) => [first + BigInt(bit), first + BigInt(bit)] as const);
}

/** Sorts ranges of serials, and joins those that touch or overlap. */
function joined(runs: readonly Run[]): Run[] {
  const result: [bigint, bigint][] = [];
  for (const [first, last] of runs.toSorted(([one], [other]) => (one < other ? -1 : 1))) {
    const before = result.at(-1);
    if (before && first <= before[1] + 1n) before[1] = last > before[1] ? last : before[1];
    else result.push([first, last]);
  }
  return result;
}
