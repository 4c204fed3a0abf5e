import { lstat, mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf } from '#platform/database/statements/faults.js';
import { giveTo, type Account } from './account.js';

/** The prefix by which the directory of a socket is recognized as one that this service made. */
export const SOCKET_DIR_PREFIX = 'svc-postgres-';

/**
 * Makes the private directory (mode 0700) for the Unix socket of the server. It is in the system's
 * temporary directory, because the path of a Unix socket may have 107 bytes at most, and that of
 * the data directory may be long.
 */
export async function makeSocketDirectory(account: Account): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), SOCKET_DIR_PREFIX));
  await giveTo(account, directory);
  return directory;
}

/**
 * Makes the socket's directory again if it is missing. The watchdog removes it when a server is
 * stopped, and a clean-up of temporary files may remove it too.
 *
 * @throws Error if another user has made a directory of that name, because that user could replace
 *   the socket
 */
export async function ensureSocketDirectory(account: Account, directory: string): Promise<void> {
  try {
    await mkdir(directory, { mode: 0o700 });
    await giveTo(account, directory);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    const { uid, mode } = await lstat(directory);
    const owner = 'uid' in account.credentials ? account.credentials.uid : process.getuid?.();
    const isOurs = uid === owner && (mode & 0o170_777) === 0o040_700;
    if (!isOurs)
      throw new Error(`${directory} is not the private directory it was`, { cause: error });
  }
}
