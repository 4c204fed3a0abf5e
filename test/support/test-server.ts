import { Client, type QueryResultRow } from 'pg';

/**
 * A PostgreSQL server behind a Unix socket. `database` is the database in which administrative
 * statements run, such as CREATE DATABASE.
 */
export interface TestServer {
  readonly socketDir: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

/**
 * Returns the URL of a database on the server, as SVC_DATABASE_URL takes it: the host is the
 * directory of the socket.
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
 * Records in a migrated database on which server it is, as a start of the service does. The service
 * uses a database only on the recorded (confirmed) server.
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
