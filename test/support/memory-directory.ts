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

/** The file system in memory of Linux. */
const MEMORY = '/dev/shm';

/** The directory of a run is named after its process. */
const PREFIX = 'svc-tests-';

/**
 * The room that a run needs at most, in bytes. A container has 64 MB by default, which is too
 * little.
 */
const ROOM = 4 * 1024 ** 3;

/**
 * Lets this process and its children put their temporary files into memory, where a copied database
 * costs a fifteenth of its time on a disk, and a flush costs nothing. Without such a file system,
 * or with a TMPDIR of the user, nothing changes.
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

/** Checks that it is there with enough room, and that programs may be run in it. */
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

/** A run that was killed leaves its directory behind. */
function isLeftOver(name: string): boolean {
  const pid = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length)) : Number.NaN;
  return Number.isInteger(pid) && !existsSync(`/proc/${pid}`);
}

function remove(directory: string): void {
  try {
    rmSync(directory, { recursive: true, force: true });
  } catch {
    // A process that ends later still writes there, or it belongs to another user. The next run
    // removes it.
  }
}
