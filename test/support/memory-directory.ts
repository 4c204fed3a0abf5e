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

/** The prefix of the names of these directories. The process id of the test run follows. */
const PREFIX = 'svc-tests-';

/**
 * The largest space in bytes that a test run needs. The 64 MB that a container has by default are
 * too little.
 */
const ROOM = 4 * 1024 ** 3;

/**
 * Puts the temporary files of this process and its children into memory. Copying a database there
 * takes a fifteenth of the time on a disk, and flushing takes no time. It does nothing if memory is
 * not fit for this (see {@link isFit}) or if TMPDIR is set.
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
 * Returns true if the folder in memory exists, is writable, has enough space, and allows programs
 * in it to run.
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

/** Returns true if the test run that made a directory was killed before it could remove it. */
function isLeftOver(name: string): boolean {
  const pid = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length)) : Number.NaN;
  return Number.isInteger(pid) && !existsSync(`/proc/${pid}`);
}

function remove(directory: string): void {
  try {
    rmSync(directory, { recursive: true, force: true });
  } catch {
    // Another process may still write into the directory, or it belongs to another user. A later
    // run removes it.
  }
}
