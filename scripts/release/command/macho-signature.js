import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';

/* The numbers of a Mach-O file, of <mach-o/loader.h>. */
const MAGIC_64 = 0xfeedfacf;
const SEGMENT_64 = 0x19;
const CODE_SIGNATURE = 0x1d;
const HEADER_SIZE = 32;
/** Segments end at a multiple of the largest page of a Mac. */
const SEGMENT_PAGE = 0x4000;

/* The numbers of a signature, of xnu's <kern/cs_blobs.h>. */
const SUPER_BLOB = 0xfade0cc0;
const CODE_DIRECTORY = 0xfade0c02;
const VERSION_WITH_SEGMENT = 0x20400;
const AD_HOC = 0x2;
const MAIN_BINARY = 1n;
const SHA256 = 2;
const HASH_SIZE = 32;
const PAGE_BITS = 12;
const PAGE = 1 << PAGE_BITS;
const DIRECTORY_SIZE = 88;
const SUPER_BLOB_SIZE = 20;

/**
 * Signs a program for macOS without a key ("ad hoc"): the signature has the SHA-256 of each page.
 * Apple Silicon runs no program without a signature. This one does not say who made the program, so
 * that Gatekeeper treats the program like an unsigned one.
 *
 * @param {string} path a Mach-O file of one 64-bit architecture without a signature
 * @param {string} identifier the name of the program in the signature
 * @throws Error for another file, and for one that has a signature already
 */
export function signAdHoc(path, identifier) {
  writeFileSync(path, withSignature(readFileSync(path), identifier));
}

function withSignature(file, identifier) {
  const { commands, linkEdit, text } = layoutOf(file);
  const start = align(file.length, 16);
  const name = Buffer.from(`${identifier}\0`);
  const pages = Math.ceil(start / PAGE);
  const directorySize = DIRECTORY_SIZE + name.length + pages * HASH_SIZE;
  const size = align(SUPER_BLOB_SIZE + directorySize, 16);

  const signed = Buffer.alloc(start + size);
  file.copy(signed);
  signed.writeUInt32LE(commands.count + 1, 16);
  signed.writeUInt32LE(commands.size + 16, 20);
  [CODE_SIGNATURE, 16, start, size].forEach((value, n) =>
    signed.writeUInt32LE(value, commands.end + 4 * n),
  );
  const length = start + size - linkEdit.from;
  signed.writeBigUInt64LE(BigInt(align(length, SEGMENT_PAGE)), linkEdit.at + 32);
  signed.writeBigUInt64LE(BigInt(length), linkEdit.at + 48);

  [SUPER_BLOB, SUPER_BLOB_SIZE + directorySize, 1, 0, SUPER_BLOB_SIZE].forEach((value, n) =>
    signed.writeUInt32BE(value, start + 4 * n),
  );
  const at = start + SUPER_BLOB_SIZE;
  writeDirectory(signed.subarray(at, at + DIRECTORY_SIZE), {
    directorySize,
    nameLength: name.length,
    pages,
    codeLimit: start,
    text,
  });
  name.copy(signed, at + DIRECTORY_SIZE);
  const hashes = at + DIRECTORY_SIZE + name.length;
  for (let page = 0; page < pages; page += 1) {
    const content = signed.subarray(page * PAGE, Math.min((page + 1) * PAGE, start));
    createHash('sha256')
      .update(content)
      .digest()
      .copy(signed, hashes + page * HASH_SIZE);
  }
  return signed;
}

/** Writes the fields before the list of hashes (the CodeDirectory of the signature). */
function writeDirectory(head, { directorySize, nameLength, pages, codeLimit, text }) {
  const words = [
    CODE_DIRECTORY,
    directorySize,
    VERSION_WITH_SEGMENT,
    AD_HOC,
    DIRECTORY_SIZE + nameLength,
    DIRECTORY_SIZE,
    0, // no special slots
    pages,
    codeLimit,
  ];
  words.forEach((value, n) => head.writeUInt32BE(value, 4 * n));
  head.set([HASH_SIZE, SHA256, 0, PAGE_BITS], 36);
  head.writeBigUInt64BE(BigInt(text.from), 64);
  head.writeBigUInt64BE(BigInt(text.size), 72);
  head.writeBigUInt64BE(MAIN_BINARY, 80);
}

/** Reads where a Mach-O file has its commands, and the segments that the signature concerns. */
function layoutOf(file) {
  if (file.length < HEADER_SIZE || file.readUInt32LE(0) !== MAGIC_64)
    throw new Error('the file is no 64-bit Mach-O file');
  const [count, size] = [file.readUInt32LE(16), file.readUInt32LE(20)];
  const end = HEADER_SIZE + size;
  const segments = new Map();
  for (let at = HEADER_SIZE, n = 0; n < count; n += 1, at += file.readUInt32LE(at + 4)) {
    const kind = file.readUInt32LE(at);
    if (kind === CODE_SIGNATURE) throw new Error('the file has a signature already');
    if (kind === SEGMENT_64) segments.set(nameAt(file, at + 8), segmentAt(file, at));
  }
  const [text, linkEdit] = [segments.get('__TEXT'), segments.get('__LINKEDIT')];
  if (text === undefined || linkEdit === undefined) throw new Error('the file lacks a segment');
  if (linkEdit.from + linkEdit.size !== file.length)
    throw new Error('the segment __LINKEDIT is not at the end of the file');
  if (text.firstSection < end + 16) throw new Error('the file has no room for a command');
  return { commands: { count, size, end }, text, linkEdit };
}

function segmentAt(file, at) {
  const sections = Array.from({ length: file.readUInt32LE(at + 64) }, (_, n) =>
    file.readUInt32LE(at + 72 + 80 * n + 48),
  ).filter((offset) => offset > 0);
  return {
    at,
    from: Number(file.readBigUInt64LE(at + 40)),
    size: Number(file.readBigUInt64LE(at + 48)),
    firstSection: Math.min(...sections, Infinity),
  };
}

function nameAt(file, at) {
  return file.toString('latin1', at, at + 16).replace(/\0.*$/s, '');
}

function align(value, to) {
  return Math.ceil(value / to) * to;
}
