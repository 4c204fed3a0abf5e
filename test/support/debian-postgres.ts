import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.js';
import { makeTemporaryDirectory, removeDirectory } from './temporary-directory.js';

/**
 * The user and group under which PostgreSQL runs if root starts it, because PostgreSQL refuses to
 * run as root.
 */
const NOBODY = 65_534;

/**
 * Returns the folder with the programs of the newest PostgreSQL from Debian; undefined if Debian's
 * PostgreSQL is not installed.
 */
export function debianPostgres(): string | undefined {
  return globSync('/usr/lib/postgresql/*/bin/initdb')
    .toSorted((one, other) => versionOf(other) - versionOf(one))[0]
    ?.replace(/\/initdb$/, '');
}

const versionOf = (path: string) => Number(/postgresql\/(\d+)/.exec(path)?.[1]);

/**
 * A running PostgreSQL server from Debian, on loopback. Debian installs `pg_dump` and `pg_restore`
 * of the same version with it.
 */
export interface DebianPostgres {
  readonly port: number;
  /** The process id of the postmaster, which is the parent of every process of the server. */
  readonly pid: number;
  /** Returns the URL by which a role connects to a database. */
  url(role: string, database: string): string;
  /** Starts a standby from a copy of the server's data. The caller must stop it. */
  startStandby(): Promise<DebianPostgres>;
  /** Stops the server and deletes its data. */
  stop(): Promise<void>;
}

/** Makes a new cluster and starts its server. The caller must stop the server. */
export async function startDebianPostgres(): Promise<DebianPostgres> {
  const settings = ['-U', 'postgres', '--auth=trust', '-E', 'UTF8', '--locale=C'];
  return startCluster('initdb', settings);
}

/** Makes a data directory by `initdb` or `pg_basebackup`, and starts a server on it. */
async function startCluster(maker: string, settings: readonly string[]): Promise<DebianPostgres> {
  const programs = debianPostgres();
  if (programs === undefined) throw new Error('no PostgreSQL of Debian is installed');
  const folder = await makeTemporaryDirectory();
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  if (user.uid !== undefined) chownSync(folder, user.uid, NOBODY);
  const data = join(folder, 'cluster');
  const made = spawnSync(join(programs, maker), [...settings, '-D', data], {
    ...user,
    cwd: folder,
  });
  if (made.status !== 0) throw new Error(String(made.stderr));
  const port = await freePort();
  const options = ['listen_addresses=127.0.0.1', 'unix_socket_directories='];
  const child = spawn(
    join(programs, 'postgres'),
    ['-D', data, '-p', String(port), ...options.flatMap((option) => ['-c', option])],
    { ...user, cwd: folder, stdio: 'ignore' },
  );
  const ended = once(child, 'close');
  const url = (role: string, database: string) =>
    `postgres://${role}@127.0.0.1:${port}/${database}`;
  const isReady = () =>
    spawnSync(join(programs, 'pg_isready'), ['-q', '-d', url('postgres', 'postgres')]).status === 0;
  while (!isReady()) {
    if (child.exitCode !== null) throw new Error('the PostgreSQL of Debian ended');
    await delay(20);
  }
  return {
    port,
    pid: child.pid ?? 0,
    url,
    startStandby: () => {
      const copy = ['-d', url('postgres', 'postgres'), '-R', '-c', 'fast', '--no-sync'];
      return startCluster('pg_basebackup', copy);
    },
    stop: async () => {
      child.kill('SIGINT');
      await ended;
      await removeDirectory(folder);
    },
  };
}
