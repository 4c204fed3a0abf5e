import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { giveTo, type Account } from './account.js';

/** By this we know a directory of ours again. */
export const SOCKET_DIR_PREFIX = 'svc-postgres-';

/**
 * Makes the private directory (0700) of the server's socket. Under the system's temporary directory, not in the data
 * directory: the path of a Unix socket may have 107 bytes at most.
 */
export async function makeSocketDirectory(account: Account): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), SOCKET_DIR_PREFIX));
  await giveTo(account, directory);
  return directory;
}
