import { createHash } from 'node:crypto';
import { open, readFile, rename, stat, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { FIRST_PLACE, type FeedPlace } from '#domain/audit/feed/audit-feed.repository.js';

/** The number of bytes that are read at once, in the search for the last newline of a file. */
const TAIL = 64 * 1024;
/** The number of characters that are collected before they are appended to the file. */
const WRITTEN = 256 * 1024;

/** The number of lines and bytes of a file, and the SHA-256 of its bytes. */
export interface Summary {
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

/** Returns true if a file exists. */
export async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/**
 * Prepares the file of an interrupted copy for further lines. An incomplete last line, which a
 * killed process left, is cut off. The file is made if it does not exist.
 * @returns the position in the audit feed of the last event in the file; FIRST_PLACE if the file is
 *   empty
 */
export async function continueAfter(path: string): Promise<FeedPlace> {
  const file = await open(path, 'a+', 0o600);
  try {
    const { size } = await file.stat();
    const lastEnd = await lastNewline(file, size);
    await file.truncate(lastEnd);
    if (lastEnd === 0) return FIRST_PLACE;
    const begin = await lastNewline(file, lastEnd - 1);
    const line = await read(file, begin, lastEnd - begin);
    const { epoch, xid, id } = JSON.parse(line.toString()) as FeedPlace;
    return { epoch, xid, id };
  } finally {
    await file.close();
  }
}

/**
 * Returns the position right after the last newline in the bytes before the position `before`; 0 if
 * there is none. Positions are in bytes.
 */
async function lastNewline(file: FileHandle, before: number): Promise<number> {
  for (let end = before; end > 0;) {
    const begin = Math.max(0, end - TAIL);
    const found = (await read(file, begin, end - begin)).lastIndexOf('\n');
    if (found !== -1) return begin + found + 1;
    end = begin;
  }
  return 0;
}

async function read(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}

/** Appends lines to a file, and waits until they are on the disk. */
export async function append(path: string, lines: AsyncIterable<string>): Promise<void> {
  const file = await open(path, 'a', 0o600);
  try {
    let text = '';
    for await (const line of lines) {
      text += `${line}\n`;
      if (text.length < WRITTEN) continue;
      await file.appendFile(text);
      text = '';
    }
    await file.appendFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Compares each line of a copy with the same line of the log.
 *
 * @param content the bytes of the copy
 * @param lines the lines that the copy must have, from the log
 * @returns the summary of an equal copy; otherwise the number of the first line that differs,
 *   counted from 1
 */
export async function compare(
  content: AsyncIterable<Buffer>,
  lines: AsyncIterable<string>,
): Promise<Summary | number> {
  const hash = createHash('sha256');
  const seen = { bytes: 0 };
  const inCopy = linesOf(counted(content, seen));
  let [rows, bytes] = [0, 0];
  try {
    for await (const line of lines) {
      rows += 1;
      const found = await inCopy.next();
      if (found.done === true || found.value !== line) return rows;
      const whole = Buffer.from(`${line}\n`);
      hash.update(whole);
      bytes += whole.length;
    }
    if ((await inCopy.next()).done !== true) return rows + 1;
  } finally {
    await inCopy.return(undefined);
  }
  // All lines are equal, so that the copy has as many bytes as the log, unless its last newline is
  // missing.
  if (seen.bytes !== bytes) return rows;
  return { rows, bytes, sha256: hash.digest('hex') };
}

/**
 * Splits bytes into lines, at newlines alone. The module `node:readline` would also split at U+2028
 * and U+2029, which JSON may contain as they are (RFC 8259 §7).
 */
async function* linesOf(content: AsyncIterable<Buffer>): AsyncGenerator<string, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of content) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let begin = 0;
    for (let end = bytes.indexOf('\n'); end !== -1; end = bytes.indexOf('\n', begin)) {
      yield bytes.toString('utf8', begin, end);
      begin = end + 1;
    }
    rest = bytes.subarray(begin);
  }
  if (rest.length > 0) yield rest.toString();
  return undefined;
}

async function* counted(content: AsyncIterable<Buffer>, seen: { bytes: number }) {
  for await (const chunk of content) {
    seen.bytes += chunk.length;
    yield chunk;
  }
}

/**
 * Renames a file to its final name, and waits until the new name is on the disk, so that a power
 * failure cannot undo it.
 */
export async function finish(from: string, to: string): Promise<void> {
  await rename(from, to);
  const directory = await open(dirname(to), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/**
 * Writes a small file as a whole: if the process is killed meanwhile, the old content stays. A file
 * that already has this text is not written.
 */
export async function writeWhole(path: string, text: string): Promise<void> {
  if ((await readFile(path, 'utf8').catch(() => undefined)) === text) return;
  const unfinished = `${path}.part`;
  const file = await open(unfinished, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await finish(unfinished, path);
}
