import { Client } from 'pg';

/** Connects to a PostgreSQL server within 30 seconds, runs one statement, and returns its rows. */
export async function runStatement<Row extends object>(
  connectionString: string,
  text: string,
  parameters: unknown[] = [],
): Promise<Row[]> {
  const client = new Client({ connectionString, connectionTimeoutMillis: 30_000 });
  // a test may kill the server, which must not end the process of the test
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Row>(text, parameters)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}
