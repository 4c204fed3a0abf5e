import { createReadStream, createWriteStream, readdirSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';

const BLOCK = 512;
const END = Buffer.alloc(2 * BLOCK);
/**
 * The longest name that fits into a header. A longer name is written as an entry of its own, in the
 * way of GNU tar.
 */
const LONGEST_NAME = 100;

/**
 * Writes a compressed archive that depends only on its entries. Every entry belongs to root and has
 * the same time, and the header of gzip has neither a name nor a time.
 *
 * @param {string} file the path of the archive
 * @param {Entry[]} entries the content, in its order
 * @param {number} time the seconds since 1970 of every entry
 *
 * @typedef {{ path: string, type: 'folder' } | { path: string, type: 'link', target: string } | {
 *   path: string, type: 'file', mode: number, from: string } | { path: string, type: 'file', mode:
 *   number, text: string }} Entry
 */
export async function writeTarGz(file, entries, time) {
  await pipeline(
    Readable.from(blocksOf(entries, time), { objectMode: false }),
    createGzip({ level: 9 }),
    createWriteStream(file),
  );
}

/**
 * Returns the entries of a folder, sorted by their names, without its own.
 *
 * @param {string} folder
 * @param {string} prefix the path of the folder in the archive
 * @param {ReadonlySet<string>} programs the paths below the folder of the files that can be run.
 *   The modes on the disk depend on the machine, and do not count
 * @returns {Entry[]}
 */
export function entriesOf(folder, prefix, programs, below = '') {
  const found = readdirSync(join(folder, below), { withFileTypes: true });
  // Compares by code units, because the alphabetical order of a language may differ between
  // machines.
  const sorted = found.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  return sorted.flatMap((entry) => {
    const path = join(below, entry.name);
    const from = join(folder, path);
    const named = { path: `${prefix}/${path}` };
    if (entry.isDirectory())
      return [{ ...named, type: 'folder' }, ...entriesOf(folder, prefix, programs, path)];
    if (entry.isSymbolicLink()) return [{ ...named, type: 'link', target: readlinkSync(from) }];
    return [{ ...named, type: 'file', mode: programs.has(path) ? 0o755 : 0o644, from }];
  });
}

async function* blocksOf(entries, time) {
  for (const entry of entries) {
    if (entry.type === 'folder') yield* headOf(`${entry.path}/`, '5', 0o755, 0, time);
    else if (entry.type === 'link') yield* headOf(entry.path, '2', 0o777, 0, time, entry.target);
    else yield* fileBlocks(entry, time);
  }
  yield END;
}

async function* fileBlocks(entry, time) {
  const { path, mode, from } = entry;
  const text = from === undefined ? Buffer.from(entry.text) : undefined;
  const size = text?.length ?? statSync(from).size;
  yield* headOf(path, '0', mode, size, time);
  if (text) yield text;
  else yield* createReadStream(from, { highWaterMark: 2 ** 20 });
  yield padding(size);
}

/** Yields the header of an entry. If its name is too long, an entry with the name comes first. */
function* headOf(path, type, mode, size, time, target = '') {
  if (Buffer.byteLength(target) > LONGEST_NAME) throw new Error(`${path}: the link is too long`);
  const name = Buffer.from(path);
  if (name.length > LONGEST_NAME) {
    const whole = Buffer.concat([name, Buffer.alloc(1)]);
    yield header({ name: Buffer.from('././@LongLink'), type: 'L', size: whole.length, time: 0 });
    yield whole;
    yield padding(whole.length);
  }
  yield header({ name: name.subarray(0, LONGEST_NAME), type, mode, size, time, target });
}

function header({ name, type, mode = 0o644, size, time, target = '' }) {
  const block = Buffer.alloc(BLOCK);
  const octal = (value, at, length) =>
    block.write(value.toString(8).padStart(length - 1, '0'), at, 'ascii');
  name.copy(block, 0);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(time, 136, 12);
  block.write('        ', 148, 'ascii'); // the checksum is counted with spaces in its place
  block.write(type, 156, 'ascii');
  block.write(target, 157, 'utf8');
  block.write('ustar  ', 257, 'ascii'); // GNU, because of the long names
  block.write('root', 265, 'ascii');
  block.write('root', 297, 'ascii');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'ascii');
  return block;
}

function padding(size) {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}
