import { readFile, readlink, realpath } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { codeOf } from '#platform/database/statements/faults.js';

/**
 * The contents of PostgreSQL's `postmaster.pid`. While PostgreSQL starts, a line may still be
 * missing.
 */
export interface Postmaster {
  /** The process id of the server; NaN if the file was cut short. */
  readonly pid: number;
  readonly port: number;
  readonly socketDir: string;
}

/**
 * Reads the pid file of a data directory. Returns undefined if there is no file, because then no
 * server runs on the directory.
 */
export async function readPostmasterPid(directory: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(directory, 'postmaster.pid'), 'utf8').catch(ignoreMissing);
  if (text === undefined) return undefined;
  // The lines are: pid, data directory, start time, port, socket directory, listen address, shared
  // memory key, status.
  const [pid = '', , , port = '', socketDir = ''] = text.split('\n');
  return { pid: Number.parseInt(pid, 10), port: Number(port), socketDir: socketDir.trim() };
}

/**
 * Returns true if the server of a pid file still runs on the directory. The process id alone proves
 * nothing, because another program may have the id now. So on Linux, which has /proc, the process
 * must also be a `postgres` with this working directory.
 */
export async function isLivePostmaster({ pid }: Postmaster, directory: string): Promise<boolean> {
  if (Number.isNaN(pid) || !isAlive(pid)) return false;
  if (process.platform !== 'linux') return true;
  try {
    const program = basename(await readlink(`/proc/${pid}/exe`));
    const workingIn = await readlink(`/proc/${pid}/cwd`);
    // After an update of PostgreSQL, the system shows the program of an old server as "postgres
    // (deleted)".
    return program.split(' ')[0] === 'postgres' && workingIn === (await realpath(directory));
  } catch {
    return false; // ended meanwhile, or a process of another user, which cannot be this server
  }
}

/** Returns true if a process with that id exists, of any user. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

function ignoreMissing(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error;
}
