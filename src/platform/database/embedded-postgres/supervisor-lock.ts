import { Client } from 'pg';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { CLUSTER_DATABASE, CLUSTER_USER } from './cluster.js';

/** The directory of a server's Unix socket, and the number at the end of the socket's file name. */
export interface SocketAddress {
  readonly socketDir: string;
  readonly port: number;
}

/**
 * Tries to become the supervisor of the server behind a socket. A supervisor keeps an advisory lock
 * in a session for as long as it runs, so that a free lock proves the end of the supervisor.
 *
 * @returns the session that has the lock, or undefined if another supervisor has it
 * @throws the error of pg if the server cannot be reached or does not respond within two seconds
 */
export async function takeSupervisorLock(address: SocketAddress): Promise<Client | undefined> {
  const session = new Client({
    host: address.socketDir,
    port: address.port,
    user: CLUSTER_USER,
    database: CLUSTER_DATABASE,
    application_name: 'svc-server supervisor',
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000,
  });
  session.on('error', () => undefined); // 'end' follows, which the callers handle
  try {
    await session.connect();
    const { rows } = await session.query<{ taken: boolean }>(
      'SELECT pg_try_advisory_lock($1) AS taken',
      [ADVISORY_LOCKS.embeddedServer],
    );
    if (rows[0]?.taken) return session;
    await session.end();
    return undefined;
  } catch (error) {
    await session.end().catch(() => undefined);
    throw error;
  }
}
