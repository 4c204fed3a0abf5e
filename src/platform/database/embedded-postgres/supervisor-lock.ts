import { Client } from 'pg';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-locks.js';
import { CLUSTER_DATABASE, CLUSTER_USER } from './cluster.js';

/** Where a server's Unix socket is. */
export interface SocketAddress {
  readonly socketDir: string;
  readonly port: number;
}

/**
 * Tries to become the one supervisor of the server behind a socket. Every supervisor holds this lock on a session of
 * its own for as long as it lives, so that a server whose lock is free is one whose supervisor died.
 *
 * @returns the session that holds the lock, or undefined when another supervisor does
 * @throws whatever pg says when the server cannot be reached or does not answer within two seconds
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
  session.on('error', () => undefined); // 'end' follows, and is what our callers look at
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
