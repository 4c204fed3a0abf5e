import { createHash } from 'node:crypto';

/**
 * The bytes with which an application begins that Node has put into an executable (a constant of
 * Node's `node_sea.cc`).
 */
const MAGIC = Buffer.from('20da4301', 'hex');
/** The offset of a byte in the application's header: 1 if NODE_OPTIONS has an effect, else 0. */
const OPTIONS_AT = 8;

/**
 * Returns the application in an executable, which consists of a header with settings and the
 * script.
 *
 * @throws Error if the executable does not contain the script exactly once
 */
export function applicationIn(executable: Buffer, script: Buffer): Buffer {
  const { start, end } = placeOf(executable, script);
  return executable.subarray(start, end);
}

/** Returns a copy of an executable in which NODE_OPTIONS has an effect. It differs in one byte. */
export function withNodeOptions(executable: Buffer, script: Buffer): Buffer {
  const copy = Buffer.from(executable);
  copy[placeOf(executable, script).start + OPTIONS_AT] = 1;
  return copy;
}

function placeOf(executable: Buffer, script: Buffer): { start: number; end: number } {
  const at = executable.indexOf(script);
  if (at === -1 || executable.includes(script, at + 1)) throw new Error('the script is not there');
  const start = executable.lastIndexOf(MAGIC, at);
  if (start === -1 || at - start > 64) throw new Error('the script has no header');
  return { start, end: at + script.length };
}

/** The values of the code signature in a program for macOS. */
export interface CodeSignature {
  readonly identifier: string;
  /** True if the signature is ad hoc: it has hashes, but no key signed them. */
  readonly isAdHoc: boolean;
  /** The numbers of the pages whose hash differs from the one in the signature. */
  readonly wrongPages: readonly number[];
  /** The number of bytes before the signature, all of which it covers. */
  readonly covered: number;
}

/**
 * Reads the code signature of a Mach-O file for one 64-bit processor. Compares each page with its
 * hash, as the kernel of macOS does before it runs the page.
 *
 * @throws Error if the file has no signature
 */
export function readCodeSignature(file: Buffer): CodeSignature {
  const at = signatureAt(file);
  const blobs = file.readUInt32BE(at + 8);
  const places = Array.from({ length: blobs }, (_, n) => [
    file.readUInt32BE(at + 12 + 8 * n),
    file.readUInt32BE(at + 16 + 8 * n),
  ]);
  // Apple's tools write two directories of hashes: one with SHA-1 for old systems, and one with
  // SHA-256.
  const directories = places
    .filter(([slot = 0]) => slot === 0 || (slot >= 0x1000 && slot < 0x1005))
    .map(([, offset = 0]) => file.subarray(at + offset));
  const directory = directories.find((one) => one[37] === 2);
  if (directory === undefined) throw new Error('the signature has no directory with SHA-256');
  const [hashesAt, identifierAt] = [16, 20].map((offset) => directory.readUInt32BE(offset));
  const [pages = 0, covered = 0] = [28, 32].map((offset) => directory.readUInt32BE(offset));
  const size = 1 << directory[39]!;
  const hashOf = (page: number) =>
    createHash('sha256')
      .update(file.subarray(page * size, Math.min((page + 1) * size, covered)))
      .digest();
  const isRight = (page: number) =>
    directory.subarray(hashesAt! + 32 * page, hashesAt! + 32 * page + 32).equals(hashOf(page));
  const wrongPages = Array.from({ length: pages }, (_, page) => page).filter(
    (page) => !isRight(page),
  );
  if (pages !== Math.ceil(covered / size) || covered !== at) throw new Error('pages are missing');
  return {
    identifier: directory.toString('utf8', identifierAt, directory.indexOf(0, identifierAt)),
    isAdHoc: (directory.readUInt32BE(12) & 2) !== 0,
    wrongPages,
    covered,
  };
}

function signatureAt(file: Buffer): number {
  const count = file.readUInt32LE(16);
  for (let at = 32, n = 0; n < count; n += 1, at += file.readUInt32LE(at + 4)) {
    if (file.readUInt32LE(at) === 0x1d) return file.readUInt32LE(at + 8);
  }
  throw new Error('the file has no signature');
}
