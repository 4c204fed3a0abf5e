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

/** The superuser initdb makes, and the database it makes: the whole cluster is the service's own. */
export const CLUSTER_USER = 'svc';
export const CLUSTER_DATABASE = 'postgres';

/** A finished data directory, and who runs a server on it. */
export interface Cluster {
  readonly directory: string;
  readonly account: Account;
}

const UNFINISHED = /^postgres\.new-(\d+)$/;

/**
 * Finds the cluster in `dataDir`, or makes it. initdb works in a sibling directory that is renamed when all is done
 * and on disk: what bears the final name is whole. (PG_VERSION proves nothing: a killed initdb leaves it behind.)
 *
 * @throws Error with initdb's own words
 */
export async function findOrMakeCluster(dataDir: string, binaries: Binaries): Promise<Cluster> {
  // Others may pass through a directory we make, whatever the umask, but not look around in it.
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
    '--auth=reject', // until the first start says who may connect
  ]);
  try {
    await run(program, args, { ...account.credentials, cwd: dataDir, env: CHILD_ENVIRONMENT });
    await rename(unfinished, directory);
    await flush(dataDir);
  } catch (cause) {
    await rm(unfinished, { recursive: true, force: true });
    if (await exists(directory)) return; // another process was faster
    throw new Error(`The embedded PostgreSQL cannot be set up in ${dataDir}: ${lastWords(cause)}`, {
      cause,
    });
  }
}

/** What the program wrote before it failed says more than that it failed. */
function lastWords(failure: unknown): string {
  const written = failure instanceof Error && 'stderr' in failure ? String(failure.stderr) : '';
  return written.trim() || reasonOf(failure);
}

/** Removes what a killed start left behind, and nothing another process is still busy with. */
async function removeUnfinished(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const pid = Number(UNFINISHED.exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(pid) || (pid !== process.pid && isAlive(pid))) continue;
    // An initdb that outlived its parent may still be writing.
    await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 10 });
  }
}

/** A rename is durable once the directory it happened in is. */
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
