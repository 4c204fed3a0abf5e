import { Client, type QueryResultRow } from 'pg';

/**
 * A PostgreSQL server that listens on a Unix socket. Administrative statements, such as CREATE
 * DATABASE, run in its database `database`.
 */
export interface TestServer {
  readonly socketDir: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

/**
 * Returns the URL of a database on the server, in the form that SVC_DATABASE_URL needs. The host in
 * the URL is the directory of the socket.
 */
export function urlOf({ user, socketDir, port }: TestServer, database: string): string {
  return `postgres://${user}@/${database}?host=${encodeURIComponent(socketDir)}&port=${port}`;
}

/** Runs one administrative statement, such as CREATE DATABASE, and returns its rows. */
export async function administer<Row extends QueryResultRow>(
  server: TestServer,
  statement: string,
): Promise<Row[]> {
  return runOn(urlOf(server, server.database), statement);
}

/**
 * Records in a migrated database on which PostgreSQL server it is, as the service does when it
 * starts. The service uses a database only on the server that is recorded.
 */
export async function confirmServer(url: string): Promise<void> {
  await runOn(
    url,
    `INSERT INTO database_identity (started_at, system_identifier, database_oid, timeline, confirmed_at)
     SELECT pg_postmaster_start_time(), s.system_identifier, d.oid, left(pg_walfile_name(pg_current_wal_lsn()), 8), now()
     FROM pg_database d, pg_control_system() s WHERE d.datname = current_database()`,
  );
}

async function runOn<Row extends QueryResultRow>(url: string, statement: string): Promise<Row[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<Row>(statement);
    return rows;
  } finally {
    await client.end();
  }
}
