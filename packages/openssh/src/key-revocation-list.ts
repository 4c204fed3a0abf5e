import {
  chooseSections,
  joinRuns,
  type SerialEncoding,
  type SerialRuns,
  serialRuns,
} from './serial-sections.js';
import { sshString, uint32, uint64 } from './wire.js';

/** The revoked certificates that one key of the authority has signed. */
export interface RevokedOfAuthority {
  /** The public key of the authority in the SSH wire encoding. */
  readonly authority: Buffer;
  /** The serials of the revoked certificates, ascending and without duplicates. */
  readonly serials: ArrayLike<number>;
}

/** The fields of a key revocation list, by which OpenSSH refuses certificates. */
export interface KeyRevocationList {
  /** The number of the list. A later list has a larger number. */
  readonly number: bigint;
  /** The time of the list. The file contains only whole seconds. */
  readonly generatedAt: Date;
  readonly comment: string;
  /**
   * Runs (serials without a gap) that are revoked, no matter which key of the authority signed the
   * certificate. The runs are in ascending order.
   */
  readonly ranges: SerialRuns;
  /**
   * The keys of the authority with their revoked certificates. The list revokes no certificate that
   * another key signed.
   */
  readonly authorities: readonly RevokedOfAuthority[];
}

// These values are fixed by OpenSSH's PROTOCOL.krl.
const MAGIC = Buffer.from('SSHKRL\n\0');
const FORMAT_VERSION = uint32(1);
const NO_FLAGS = uint64(0n);
const RESERVED = sshString('');
const CERTIFICATES = 0x01; // KRL_SECTION_CERTIFICATES

/**
 * For each way to encode serials: the number of the section in PROTOCOL.krl
 * (KRL_SECTION_CERT_SERIAL_*), and the function that writes its content.
 */
const SERIALS: Record<
  SerialEncoding,
  readonly [type: number, write: (runs: SerialRuns) => Buffer]
> = {
  list: [0x20, writeList],
  range: [0x21, writeRange],
  bitmap: [0x22, writeBitmap],
};

/**
 * Encodes a key revocation list for OpenSSH (PROTOCOL.krl): the header, and one section for each
 * key of the authority that signed a revoked certificate. The list is not signed, because OpenSSH
 * verifies no signature of a list.
 *
 * @throws RangeError if the serials are not ascending
 */
export function encodeKeyRevocationList(list: KeyRevocationList): Buffer {
  const header = [
    MAGIC,
    FORMAT_VERSION,
    uint64(list.number),
    uint64(BigInt(Math.floor(list.generatedAt.getTime() / 1000))),
    NO_FLAGS,
    RESERVED,
    sshString(list.comment),
  ];
  const sections = list.authorities.flatMap((revoked) => certificateSection(revoked, list.ranges));
  return Buffer.concat([...header, ...sections]);
}

/**
 * Encodes the section of one key of the authority. The result is empty if none of the key's
 * certificates is revoked.
 */
function certificateSection(
  { authority, serials }: RevokedOfAuthority,
  ranges: SerialRuns,
): Buffer[] {
  const listed = serialRuns(serials);
  const runs = ranges.low.length === 0 ? listed : joinRuns(ranges, listed);
  if (runs.low.length === 0) return [];
  const parts = chooseSections(runs).flatMap((part) => {
    const [type, write] = SERIALS[part.encoding];
    return section(type, write(part));
  });
  return section(CERTIFICATES, Buffer.concat([sshString(authority), RESERVED, ...parts]));
}

/** Encodes a section, which may contain other sections: its type, its length and its content. */
function section(type: number, content: Buffer): Buffer[] {
  return [Buffer.of(type), uint32(content.length), content];
}

function writeRange({ low: [first = 0], high: [last = 0] }: SerialRuns): Buffer {
  return Buffer.concat([serial(first), serial(last)]);
}

function serial(value: number): Buffer {
  return uint64(BigInt(value));
}

function writeList({ low, high }: SerialRuns): Buffer {
  const count = low.reduce((sum, first, run) => sum + (high[run] ?? 0) - first + 1, 0);
  const encoded = Buffer.allocUnsafeSlow(8 * count);
  const view = new DataView(encoded.buffer);
  let offset = 0;
  for (let run = 0; run < low.length; run += 1) {
    for (let value = low[run] ?? 0; value <= (high[run] ?? 0); value += 1) {
      const upper = Math.floor(value / 2 ** 32);
      view.setUint32(offset, upper);
      view.setUint32(offset + 4, value - upper * 2 ** 32);
      offset += 8;
    }
  }
  return encoded;
}

/**
 * Encodes a bitmap of serials: the lowest serial, then an mpint (RFC 4251 §5). Bit n of the mpint
 * stands for the lowest serial plus n. The mpint is in network order. A zero byte is put first if
 * the highest bit is set. Without it, the mpint would be a negative number.
 */
function writeBitmap({ low, high }: SerialRuns): Buffer {
  const start = low[0] ?? 0;
  const bits = (high.at(-1) ?? 0) - start + 1;
  const bytes = Buffer.alloc(Math.floor(bits / 8) + 1);
  for (let run = 0; run < low.length; run += 1) {
    const end = (high[run] ?? 0) - start;
    for (let bit = (low[run] ?? 0) - start; bit <= end; bit += 1) {
      const at = bytes.length - 1 - Math.floor(bit / 8);
      bytes[at] = (bytes[at] ?? 0) | (1 << (bit % 8));
    }
  }
  return Buffer.concat([serial(start), sshString(bytes)]);
}
