import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { giveTo, peerName } from './account.js';
import { CLUSTER_USER, type Cluster } from './cluster.js';

/**
 * The name of the map, in pg_ident.conf, from a user of the operating system to a user of
 * PostgreSQL.
 */
const MAP = 'svc';

/**
 * Writes the files that say which users may connect to the server of a cluster: this process's user
 * and root, by `peer` authentication. No other process may connect, not even one with the server's
 * own user id. The files are written before every start, because a cluster that an earlier version
 * of the service made accepts every connection.
 *
 * @throws Error if this process's user has no name on this system
 */
export async function restrictConnections(cluster: Cluster): Promise<void> {
  const users = new Set(['root', peerName(cluster.account)]);
  await write(
    cluster,
    'pg_ident.conf',
    [...users].map((user) => `${MAP} ${user} ${CLUSTER_USER}`),
  );
  await write(cluster, 'pg_hba.conf', [`local all ${CLUSTER_USER} peer map=${MAP}`]);
}

async function write({ directory, account }: Cluster, name: string, lines: readonly string[]) {
  const unfinished = join(directory, `${name}.new`);
  const text = ['# Written by svc-server before each start.', ...lines, ''].join('\n');
  // The account owns the directory and may have created a symbolic link under this name. This
  // process may be root, and must not write to the target of such a link.
  await rm(unfinished, { force: true });
  await writeFile(unfinished, text, { mode: 0o600, flag: 'wx' });
  await giveTo(account, unfinished);
  await rename(unfinished, join(directory, name));
}
