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
 * Creates the key file `path`, which only its owner can read, if it does not exist yet. A temporary
 * file gets the whole text first, so that a crash leaves no half-written key file. `link` then
 * gives the file its final name; unlike `rename`, it fails if that name exists. So if two processes
 * start at once, both use the key of the first. The key is on disk before the function returns.
 *
 * @returns the text that is in the file now, written by this process or by the other one
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
