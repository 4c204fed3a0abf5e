import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
} from 'node:fs';
import { join } from 'node:path';

/** The folder of a Linux system whose files are in memory. */
const MEMORY = '/dev/shm';

/** The beginning of the name of a run's directory. The process id follows. */
const PREFIX = 'svc-tests-';

/**
 * The free space in bytes that a run needs at most. A container has 64 MB by default, which is too
 * little.
 */
const ROOM = 4 * 1024 ** 3;

/**
 * Puts the temporary files of this process and its children into memory. There a copied database
 * costs a fifteenth of its time on a disk, and a flush costs nothing. If the system has no such
 * folder, or the user has set TMPDIR, nothing changes.
 */
export function useMemoryDirectory(): void {
  if (process.env['TMPDIR'] !== undefined || !isFit()) return;
  for (const name of readdirSync(MEMORY)) if (isLeftOver(name)) remove(join(MEMORY, name));
  const directory = join(MEMORY, `${PREFIX}${process.pid}`);
  mkdirSync(directory, { recursive: true });
  chmodSync(directory, 0o1777); // some tests run as another user
  process.env['TMPDIR'] = directory;
  process.once('exit', () => {
    remove(directory);
  });
}

/**
 * Returns true if the folder in memory exists, has enough space, and allows programs in it to run.
 */
function isFit(): boolean {
  if (process.platform !== 'linux' || !existsSync(MEMORY)) return false;
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
  const [, , , options = ''] =
    mounts.findLast((line) => line.split(' ')[1] === MEMORY)?.split(' ') ?? [];
  if (options === '' || options.split(',').some((one) => one === 'noexec' || one === 'ro'))
    return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= ROOM;
}

/** Returns true if the test run that made a directory no longer exists, because it was killed. */
function isLeftOver(name: string): boolean {
  const pid = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length)) : Number.NaN;
  return Number.isInteger(pid) && !existsSync(`/proc/${pid}`);
}

function remove(directory: string): void {
  try {
    rmSync(directory, { recursive: true, force: true });
  } catch {
    // A process may still write into the directory, or the directory belongs to another user. The
    // next run removes it.
  }
}
