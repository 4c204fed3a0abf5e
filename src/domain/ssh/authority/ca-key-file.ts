import { link, mkdir, open, readFile, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { newUuid } from '#platform/clock/random.js';

/** Reads the text of a key file; undefined if there is no file. */
export async function readKeyFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/**
 * Writes a private key to a file that only its owner can read, if there is no file yet. The file is
 * never visible in part, and is on disk before the function returns. `link` never replaces a file.
 * So if two processes start at once, only the first writes its key.
 *
 * @returns the text that is in the file now, from this process or the other one
 */
export async function createKeyFile(path: string, text: string): Promise<string> {
  const directory = dirname(path);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const temporary = `${path}.${newUuid()}`;
  await writeDurably(temporary, text);
  try {
    await link(temporary, path);
    await syncDirectory(directory);
    return text;
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
    return await readFile(path, 'utf8');
  } finally {
    await unlink(temporary);
  }
}

async function writeDurably(path: string, text: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  await file.writeFile(text);
  await file.sync();
}

async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, 'r');
  await directory.sync();
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
