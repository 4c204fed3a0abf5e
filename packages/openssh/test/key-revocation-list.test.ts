import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { encodeKeyRevocationList, type KeyRevocationList } from '../src/key-revocation-list.js';
import { joinRuns, NO_RUNS, serialRuns } from '../src/serial-sections.js';
import { SshReader, sshStrings, uint64 } from '../src/wire.js';

interface Vectors {
  readonly authority: string;
  readonly lists: readonly {
    readonly name: string;
    readonly number: string;
    readonly generatedAt: string;
    readonly serials: readonly number[];
    readonly krl: string;
  }[];
}

const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../../../test/vectors/ssh/revocation-lists.json', import.meta.url), 'utf8'),
);

const START = 1_763_683_200_000;
const AUTHORITY = sshStrings(['ssh-ed25519', Buffer.alloc(32, 7)]);

const encode = (
  serials: readonly number[],
  { authority = AUTHORITY, ...rest }: Partial<KeyRevocationList> & { authority?: Buffer } = {},
) =>
  encodeKeyRevocationList({
    number: 7n,
    generatedAt: new Date('2026-11-21T10:00:00.999Z'),
    comment: '',
    ranges: NO_RUNS,
    authorities: [{ authority, serials }],
    ...rest,
  });

const evenly = (count: number, step: number, start = START) =>
  Array.from({ length: count }, (_, index) => start + step * index);

describe('OpenSSH PROTOCOL.krl, against ssh-keygen -k', () => {
  it.each(vectors.lists.map((list) => [list.name, list] as const))(
    'encodes %s to the same bytes',
    (_, list) => {
      const krl = encode(list.serials, {
        number: BigInt(list.number),
        generatedAt: new Date(list.generatedAt),
        authority: Buffer.from(vectors.authority, 'base64'),
      });
      expect(krl.toString('hex')).toBe(list.krl);
    },
  );
});

describe('OpenSSH PROTOCOL.krl, the header', () => {
  it('has number, date and comment, and no section while no certificate is revoked', () => {
    const reader = new SshReader(encode([], { comment: 'ssh-ca@example.com' }));
    expect(reader.bytes(8).toString('latin1')).toBe('SSHKRL\n\0');
    expect(reader.uint32()).toBe(1);
    expect(reader.bytes(8).readBigUInt64BE()).toBe(7n);
    expect(reader.bytes(8).readBigUInt64BE()).toBe(BigInt(Date.UTC(2026, 10, 21, 10) / 1000));
    expect(reader.bytes(8).readBigUInt64BE()).toBe(0n);
    expect(reader.name()).toBe('');
    expect(reader.name()).toBe('ssh-ca@example.com');
    reader.end();
  });

  it('names the one authority whose certificates it revokes', () => {
    const { authorities } = read(encode([START]));
    expect(authorities).toEqual([AUTHORITY]);
  });

  it('has a section for each authority, and none for an authority without a revoked certificate', () => {
    const [other, unused] = [1, 2].map((byte) =>
      sshStrings(['ssh-ed25519', Buffer.alloc(32, byte)]),
    ) as [Buffer, Buffer];
    const { authorities, serials } = read(
      encode([], {
        authorities: [
          { authority: AUTHORITY, serials: [START, START + 2] },
          { authority: unused, serials: [] },
          { authority: other, serials: [START + 1] },
        ],
      }),
    );
    expect(authorities).toEqual([AUTHORITY, other]);
    expect(serials).toEqual([START, START + 2, START + 1]);
  });
});

describe('OpenSSH PROTOCOL.krl, the serials', () => {
  it.each([
    ['none', []],
    ['serial 0', [0]],
    ['serials from 0 on', evenly(50, 1, 0)],
    ['the largest serial that is safe', [Number.MAX_SAFE_INTEGER]],
    ['serials across 2^32', [2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 33]],
    ['a bitmap of exactly the longest that OpenSSH reads', evenly(8192, 2).concat(START + 16_383)],
    ['a bitmap that would be a bit longer', evenly(8192, 2).concat(START + 16_384)],
    ['a row longer than any bitmap, between others', [START, ...evenly(20_000, 1, START + 9)]],
    ['every second of 100,000', evenly(50_000, 2)],
  ])('%s', (_, serials) => {
    const krl = read(encode(serials));
    expect(krl.serials).toEqual(serials);
    expect(Math.max(0, ...krl.bitmapBytes)).toBeLessThanOrEqual(2049);
  });

  it('decode to the encoded set, for a thousand random sets', () => {
    const random = randomNumbers(20_261_121);
    for (let round = 0; round < 1_000; round += 1) {
      const serials: number[] = [];
      let serial = START;
      const most = 10 ** (1 + Math.floor(random() * 4));
      for (let index = 0; index < 100 * random(); index += 1) {
        serial += random() < 0.7 ? 1 + Math.floor(random() * 4) : 1 + Math.floor(random() * most);
        serials.push(serial);
      }
      expect(read(encode(serials)).serials).toEqual(serials);
    }
  });

  it('in a range of every serial so far take 21 bytes under each key, and no serial is written twice', () => {
    const range = (low: number, high: number) => ({
      low: Float64Array.of(low),
      high: Float64Array.of(high),
    });
    const other = sshStrings(['ssh-ed25519', Buffer.alloc(32, 1)]);
    const listed = evenly(1_000, 1_009);
    const above = START + 9_000_000_000;
    const authorities = [
      { authority: AUTHORITY, serials: [...listed, above] },
      { authority: other, serials: [] },
    ];
    const header = encode([]).length;
    const section = 5 + (4 + AUTHORITY.length) + 4;
    const krl = encode([], { ranges: range(1, START + 8_000_000_000), authorities });
    expect(krl).toHaveLength(header + 2 * (section + 21) + 5 + 8);
    const [first] = sectionsOf(krl.subarray(44));
    expect(first?.content.subarray(-13 - 16, -13).toString('hex')).toBe(
      Buffer.concat([1, START + 8_000_000_000].map((end) => uint64(BigInt(end)))).toString('hex'),
    );
    const within = read(encode(listed, { ranges: range(START + 5, START + 3_000) }));
    const row = evenly(2_996, 1, START + 5);
    expect(within.serials).toEqual([...new Set([...listed, ...row])].toSorted((a, b) => a - b));
  });

  it('of two columns of runs are joined, for a thousand random ones', () => {
    const random = randomNumbers(7);
    for (let round = 0; round < 1_000; round += 1) {
      const members = new Set<number>();
      const runs = [0, 1].map(() => {
        const low = evenly(8, 0, 0)
          .map(() => Math.floor(random() * 60))
          .toSorted((a, b) => a - b);
        const high = low.map((first) => first + Math.floor(random() * 6));
        low.forEach((first, run) =>
          evenly((high[run] ?? 0) - first + 1, 1, first).forEach((serial) => members.add(serial)),
        );
        return { low: Float64Array.from(low), high: Float64Array.from(high) };
      });
      const [one = NO_RUNS, two = NO_RUNS] = runs;
      const joined = joinRuns(one, two);
      expect(joined).toEqual(serialRuns([...members].toSorted((a, b) => a - b)));
    }
  });

  it('use the smallest encoding: range, bitmap or list', () => {
    expect(read(encode(evenly(500, 1))).sections).toEqual(['range']);
    expect(read(encode(evenly(500, 3))).sections).toEqual(['bitmap']);
    expect(read(encode(evenly(500, 1_000))).sections).toEqual(['list']);
    const all = [
      ...evenly(300, 1),
      ...evenly(300, 3, START + 1_000_000),
      ...evenly(300, 1_000, START + 2_000_000),
      START + 9_000_000,
    ];
    expect(read(encode(all)).sections).toEqual(['range', 'bitmap', 'list']);
  });

  it('take 129 bytes for 100,000 in a row, and 800 KB at random', () => {
    expect(encode(evenly(100_000, 1))).toHaveLength(129);
    expect(encode(evenly(100_000, 300_007))).toHaveLength(800_113);
  });

  it('100,000 at random are encoded within 50 ms', () => {
    const random = randomNumbers(1);
    let serial = START;
    const serials = evenly(100_000, 0).map(() => (serial += 1 + Math.floor(random() * 600_000)));
    const times = evenly(7, 0).map(() => {
      // CPU time is measured and not elapsed time, because other processes share the machine.
      const begin = process.threadCpuUsage();
      encode(serials);
      return process.threadCpuUsage(begin).user / 1000;
    });
    expect(Math.min(...times)).toBeLessThan(50); // the fastest of seven runs
  });

  it.each([
    ['descending', [2, 1]],
    ['twice the same', [1, 1]],
    ['negative', [-1]],
    ['a fraction', [1.5]],
    ['not a number', [Number.NaN]],
    ['beyond what is safe', [2 ** 53]],
  ])('%s is refused: another certificate would be revoked', (_, serials) => {
    expect(() => encode(serials)).toThrow(RangeError);
    expect(() => serialRuns(serials)).toThrow(RangeError);
  });
});

const ENCODINGS = new Map([
  [0x20, 'list'],
  [0x21, 'range'],
  [0x22, 'bitmap'],
]);

/**
 * Reads a list as PROTOCOL.krl describes it. It shares no code with the encoder, so that a fault of
 * the encoder shows.
 */
function read(krl: Buffer) {
  const authorities: Buffer[] = [];
  const sections: (string | undefined)[] = [];
  const serials: number[] = [];
  const bitmapBytes: number[] = [];
  for (const { type, content } of sectionsOf(krl.subarray(44 + krl.readUInt32BE(40)))) {
    expect(type).toBe(1);
    const head = new SshReader(content);
    authorities.push(head.string());
    expect(head.string()).toHaveLength(0);
    for (const part of sectionsOf(head.rest())) {
      sections.push(ENCODINGS.get(part.type));
      if (part.type === 0x22) bitmapBytes.push(part.content.readUInt32BE(8));
      for (const serial of serialsOf(part)) serials.push(serial);
    }
  }
  return { authorities, sections, serials, bitmapBytes };
}

interface Section {
  readonly type: number;
  readonly content: Buffer;
}

function* sectionsOf(bytes: Buffer): Generator<Section> {
  for (let offset = 0; offset < bytes.length;) {
    const end = offset + 5 + bytes.readUInt32BE(offset + 1);
    expect(end).toBeLessThanOrEqual(bytes.length);
    yield { type: bytes.readUInt8(offset), content: bytes.subarray(offset + 5, end) };
    offset = end;
  }
}

function* serialsOf({ type, content }: Section): Generator<number> {
  const at = (offset: number) => Number(content.readBigUInt64BE(offset));
  if (type === 0x20) {
    expect(content.length % 8).toBe(0);
    for (let offset = 0; offset < content.length; offset += 8) yield at(offset);
  } else if (type === 0x21) {
    expect(content).toHaveLength(16);
    for (let serial = at(0); serial <= at(8); serial += 1) yield serial;
  } else {
    const integer = new SshReader(content.subarray(8));
    const magnitude = integer.mpint(); // throws unless it has its shortest form
    integer.end();
    for (let bit = 0; bit < 8 * magnitude.length; bit += 1) {
      const byte = magnitude[magnitude.length - 1 - Math.floor(bit / 8)] ?? 0;
      if ((byte >> (bit % 8)) % 2 === 1) yield at(0) + bit;
    }
  }
}

/** Returns a function that gives the same numbers from 0 to 1 in each run (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
