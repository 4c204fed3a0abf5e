import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, writeFile } from 'node:fs/promises';
import { createConnection, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Client } from 'pg';
import { collected } from './collected-process.js';
import { freePort } from './free-port.js';
import { makeTemporaryDirectory, removeDirectory } from './temporary-directory.js';
import type { TestServer } from './test-server.js';

/** A PgBouncer in transaction mode on loopback. */
export interface PgBouncer {
  readonly port: number;
  readonly pid: number;
  /** Returns the URL by which a service connects to a database through PgBouncer. */
  url(database: string): string;
  /** Runs a command in PgBouncer's administration console, such as RECONNECT. */
  command(text: string): Promise<void>;
}

/**
 * The user id of `nobody`. If root runs the tests, PgBouncer runs under it, because it refuses to
 * run as root.
 */
const NOBODY = 65_534;

/**
 * Starts a PgBouncer in front of the PostgreSQL of the tests. It stops when the test disposes
 * `parts`.
 */
export async function startPgBouncer(
  parts: AsyncDisposableStack,
  server: TestServer,
): Promise<PgBouncer> {
  return startPgBouncerTo(parts, { port: await openToLoopback(parts, server), user: server.user });
}

/**
 * Starts a PgBouncer in front of the PostgreSQL server on a loopback port. It connects to the
 * server as the role `user`.
 */
export async function startPgBouncerTo(
  parts: AsyncDisposableStack,
  { port: serverPort, user }: { readonly port: number; readonly user: string },
): Promise<PgBouncer> {
  const folder = await makeTemporaryDirectory();
  parts.defer(() => removeDirectory(folder));
  await chmod(folder, 0o755);
  const port = await freePort();
  const [file, users] = [join(folder, 'pgbouncer.ini'), join(folder, 'users.txt')];
  await writeFile(users, `"${user}" ""\n`);
  const lines = [
    '[databases]',
    `* = host=127.0.0.1 port=${serverPort} user=${user}`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    `auth_type = trust\nauth_file = ${users}\nadmin_users = ${user}`,
    'pool_mode = transaction\ndefault_pool_size = 8\nmax_client_conn = 500',
  ];
  await writeFile(file, `${lines.join('\n')}\n`);
  const account = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const child = spawn('/usr/sbin/pgbouncer', [file], {
    ...account,
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const bouncer = collected(parts, child);
  await bouncer.until(() => bouncer.output().includes('process up'));
  const url = (database: string) => `postgres://${user}@127.0.0.1:${port}/${database}`;
  return {
    port,
    pid: child.pid ?? 0,
    url,
    command: async (text) => {
      const client = new Client({ connectionString: url('pgbouncer') });
      await client.connect();
      await client.query(text);
      await client.end();
    },
  };
}

/**
 * Forwards a loopback port to the Unix socket of the tests' PostgreSQL server, and returns the
 * port. PgBouncer needs it, because only the user of the tests may open that socket.
 */
async function openToLoopback(
  parts: AsyncDisposableStack,
  { socketDir, port }: TestServer,
): Promise<number> {
  const proxy = createServer((socket) => {
    const onward = createConnection(join(socketDir, `.s.PGSQL.${port}`));
    socket.pipe(onward).pipe(socket);
    socket.on('error', () => onward.destroy()).on('close', () => onward.destroy());
    onward.on('error', () => socket.destroy()).on('close', () => socket.destroy());
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  parts.defer(() => void proxy.close());
  return (proxy.address() as AddressInfo).port;
}
