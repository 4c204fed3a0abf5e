import { Client, type QueryResultRow } from 'pg';

/** A PostgreSQL server behind a Unix socket; `database` is the one for administration. */
export interface TestServer {
  readonly socketDir: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

/** Returns the URL of a database on the server for SVC_DATABASE_URL: the host is the socket's directory. */
export function urlOf({ user, socketDir, port }: TestServer, database: string): string {
  return `postgres://${user}@/${database}?host=${encodeURIComponent(socketDir)}&port=${port}`;
}

/** Runs one statement outside every test database, and returns its rows. */
export async function administer<Row extends QueryResultRow>(
  server: TestServer,
  statement: string,
): Promise<Row[]> {
  const client = new Client({ connectionString: urlOf(server, server.database) });
  await client.connect();
  try {
    const { rows } = await client.query<Row>(statement);
    return rows;
  } finally {
    await client.end();
  }
}
