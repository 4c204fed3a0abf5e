import { execFile } from 'node:child_process';
import { chmod, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { reasonOf } from '#platform/database/statements/faults.js';
import {
  CHILD_ENVIRONMENT,
  accountForNewCluster,
  accountOfCluster,
  commandOf,
  giveTo,
  type Account,
} from './account.js';
import type { Binaries } from './binaries.js';
import { isAlive } from './postmaster-pid.js';

const run = promisify(execFile);

/**
 * The superuser and the database that initdb makes. The service uses both, because the whole
 * cluster belongs to it.
 */
export const CLUSTER_USER = 'svc';
export const CLUSTER_DATABASE = 'postgres';

/**
 * The directory of a complete PostgreSQL database cluster, and the operating system's account that
 * runs its server.
 */
export interface Cluster {
  readonly directory: string;
  readonly account: Account;
}

const UNFINISHED = /^postgres\.new-(\d+)$/;

/**
 * Finds the cluster in `dataDir`, or makes it. initdb writes to a sibling directory, which gets the
 * final name only when it is complete and on disk. So a directory with the final name is always
 * complete. (The file PG_VERSION proves nothing, because an interrupted initdb leaves it behind.)
 *
 * @throws Error with the message of initdb
 */
export async function findOrMakeCluster(dataDir: string, binaries: Binaries): Promise<Cluster> {
  // Other users may traverse a new directory, with any umask, but not list it.
  if (await mkdir(dataDir, { recursive: true })) await chmod(dataDir, 0o711);
  const directory = join(dataDir, 'postgres');
  if (!(await exists(directory))) {
    await removeUnfinished(dataDir);
    await make(dataDir, directory, binaries);
  }
  return { directory, account: await accountOfCluster(directory) };
}

async function make(dataDir: string, directory: string, binaries: Binaries): Promise<void> {
  const account = await accountForNewCluster(dataDir, binaries.postgres);
  const unfinished = join(dataDir, `postgres.new-${process.pid}`);
  await mkdir(unfinished);
  await chmod(unfinished, 0o700);
  await giveTo(account, unfinished);
  const [program = '', ...args] = commandOf(account, binaries.initdb, [
    `--pgdata=${unfinished}`,
    `--username=${CLUSTER_USER}`,
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--auth=reject', // refuses all, until the first start writes the allowed users
  ]);
  try {
    await run(program, args, { ...account.credentials, cwd: dataDir, env: CHILD_ENVIRONMENT });
    await rename(unfinished, directory);
    await flush(dataDir);
  } catch (cause) {
    await rm(unfinished, { recursive: true, force: true });
    if (await exists(directory)) return; // another process made the cluster first
    throw new Error(`The embedded PostgreSQL cannot be set up in ${dataDir}: ${lastWords(cause)}`, {
      cause,
    });
  }
}

/**
 * Returns what a failed program wrote to standard error, which says more than its exit status. If
 * it wrote nothing, returns the reason of the failure.
 */
function lastWords(failure: unknown): string {
  const written = failure instanceof Error && 'stderr' in failure ? String(failure.stderr) : '';
  return written.trim() || reasonOf(failure);
}

/**
 * Removes the incomplete clusters of interrupted starts. A directory stays if the process that
 * makes it still runs.
 */
async function removeUnfinished(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const pid = Number(UNFINISHED.exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(pid) || (pid !== process.pid && isAlive(pid))) continue;
    // An initdb that outlived its parent may still add files meanwhile, so the removal is repeated.
    await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 10 });
  }
}

/**
 * Writes the entries of a directory to disk, so that a renamed file in it is still renamed after a
 * crash.
 */
async function flush(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
