import { Client } from 'pg';

/**
 * Connects to a PostgreSQL server, runs one statement, and returns its rows. Throws if connecting
 * takes more than 30 seconds.
 */
export async function runStatement<Row extends object>(
  connectionString: string,
  text: string,
  parameters: unknown[] = [],
): Promise<Row[]> {
  const client = new Client({ connectionString, connectionTimeoutMillis: 30_000 });
  // A test may kill the server. Without a listener, that error would end this process.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Row>(text, parameters)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}
