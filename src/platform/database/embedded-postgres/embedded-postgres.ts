import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Logger } from '@nestjs/common';
import { giveCluster, ownAccountFor } from './account.js';
import { locateBinaries, type Binaries } from './binaries.js';
import { CLUSTER_DATABASE, CLUSTER_USER, findOrMakeCluster, type Cluster } from './cluster.js';
import { reclaimDirectory } from './reclaim.js';
import { makeSocketDirectory } from './socket-directory.js';
import { Supervisor } from './supervisor.js';

/**
 * A running embedded server of PostgreSQL. Clients connect to the Unix socket in `socketDir`, as
 * the user that started the server or as root.
 */
export interface EmbeddedPostgres {
  readonly socketDir: string;
  /** The number in the name of the socket (`.s.PGSQL.5432`). No TCP port is open. */
  readonly port: number;
  readonly user: string;
  readonly database: string;
  /**
   * Stops the server (fast shutdown) and resolves when it has ended. It does not wait for a server
   * that does not answer. May be called more than once.
   */
  stop(): Promise<void>;
}

/** The options of {@link startEmbeddedPostgres}. Only `dataDir` and `log` are required. */
export interface EmbeddedPostgresOptions {
  /** The parent of the data directory `postgres/`. It is made if it is missing. */
  readonly dataDir: string;
  readonly log: Logger;
  /**
   * Settings (`-c name=value`) that replace the defaults of PostgreSQL. With the defaults, no
   * commit is lost in a crash.
   */
  readonly settings?: Readonly<Record<string, string>>;
  /** The milliseconds without a response after which the server is killed and started again. */
  readonly patience?: number;
}

const PORT = 5432;
const PATIENCE = 30_000;

/**
 * Runs PostgreSQL as a child process until `stop` is called or this process ends, even by `kill
 * -9`. It works as root and as an ordinary user. A server that an earlier, killed run left behind
 * is stopped first, and its data is kept. If the server ends by itself or stops responding, it is
 * started again behind the same socket.
 *
 * @throws Error with one line for the operator if the server cannot run
 */
export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const { log, settings = {}, patience = PATIENCE } = options;
  const binaries = await locateBinaries();
  const cluster = await prepareCluster(options, binaries);
  const socketDir = await makeSocketDirectory(cluster.account);
  const address = { socketDir, port: PORT };
  const { postgres } = binaries;
  const supervisor = new Supervisor({ postgres, cluster, address, settings, patience, log });
  const removeSocketDir = () => rm(socketDir, { recursive: true, force: true });
  try {
    await supervisor.start();
    log.log(`The embedded PostgreSQL is ready: its data is in ${cluster.directory}`);
  } catch (error) {
    await removeSocketDir();
    throw error;
  }
  return {
    ...address,
    user: CLUSTER_USER,
    database: CLUSTER_DATABASE,
    stop: async () => {
      const hasEnded = await supervisor.stop();
      // The next start removes the directory of a server that ended later.
      if (hasEnded) await removeSocketDir();
    },
  };
}

/**
 * Finds or makes the cluster, which is the data directory of PostgreSQL. If this process is root,
 * the cluster also gets an owner with a user id that no other service uses.
 */
async function prepareCluster(
  { dataDir, log }: EmbeddedPostgresOptions,
  binaries: Binaries,
): Promise<Cluster> {
  const cluster = await findOrMakeCluster(resolve(dataDir), binaries);
  const account = await ownAccountFor(cluster.directory, cluster.account, binaries.postgres);
  if (!account) return cluster;
  await reclaimDirectory(cluster.directory, '', log);
  await giveCluster(account, cluster.directory);
  return { ...cluster, account };
}
