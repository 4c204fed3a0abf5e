import { Query, type Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DriverClient } from '#platform/database/hosts/driver-client.js';
import { isDatabaseAway } from '#platform/database/statements/faults.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

/** The time limit of the client's queries, in milliseconds. */
const LIMIT = 150;

describe('our client of PostgreSQL', () => {
  let database: TestDatabase;
  let client: Client;
  beforeAll(async () => {
    database = await createTestDatabase();
    const maker: Client = new DriverClient({ connectionString: database.url });
    await maker.connect();
    await maker.query('CREATE TABLE notes (note text)');
    await maker.end();
  });
  afterAll(() => database.drop());
  beforeEach(async () => {
    client = new DriverClient({ connectionString: database.url, query_timeout: LIMIT });
    client.on('error', () => undefined);
    await client.connect();
  });
  afterEach(() => client.end());

  it('runs texts, values, named statements, callbacks and queries of the driver', async () => {
    expect((await client.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
    expect((await client.query('SELECT $1::int AS n', [2])).rows).toEqual([{ n: 2 }]);
    const named = { name: 'three', text: 'SELECT $1::int AS n' };
    expect((await client.query(named, [3])).rows).toEqual([{ n: 3 }]);
    expect((await client.query({ ...named, values: [4] })).rows).toEqual([{ n: 4 }]);
    const called = Promise.withResolvers<unknown>();
    client.query('SELECT 5 AS n', (_error, result) => called.resolve(result.rows));
    expect(await called.promise).toEqual([{ n: 5 }]);
    const ended = Promise.withResolvers<unknown>();
    const query = client.query(new Query('SELECT 6 AS n'));
    query.on('row', (row) => ended.resolve(row));
    expect(await ended.promise).toEqual({ n: 6 });
    const several = (await client.query('SELECT 7 AS n; SELECT 8 AS n')) as unknown;
    expect((several as { rows: object[] }[]).map(({ rows }) => rows)).toEqual([
      [{ n: 7 }],
      [{ n: 8 }],
    ]);
  });

  it('throws what PostgreSQL reports, with a stack that leads to the caller', async () => {
    const failed = async () => client.query('SELECT broken');
    const error = await failed().catch((fault: unknown) => fault);
    expect(error).toMatchObject({ code: '42703' });
    expect((error as Error).stack).toContain('driver-client.test.ts');
    expect((await client.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  });

  it('ends the wait for an answer after its limit, and never sends a query that waited', async () => {
    const slow = client.query('SELECT pg_sleep(30)').catch((error: unknown) => error);
    const waiting = client
      .query("INSERT INTO notes VALUES ('late')")
      .catch((error: unknown) => error);
    const errors = await Promise.all([slow, waiting]);
    expect(errors.map((error) => (error as Error).message)).toEqual([
      'Query read timeout',
      'Query read timeout',
    ]);
    expect(errors.every(isDatabaseAway)).toBe(true);

    const other: Client = new DriverClient({ connectionString: database.url });
    await other.connect();
    const [row] = (
      await other.query<{ pid: number }>(
        "SELECT pg_cancel_backend(pid), pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(30)'",
      )
    ).rows;
    expect(row?.pid).toBeGreaterThan(0);
    // The connection is free again once the server has answered.
    await expect
      .poll(() => client.query('SELECT 1 AS n').then(({ rows }) => rows, String))
      .toEqual([{ n: 1 }]);
    expect((await other.query('SELECT note FROM notes')).rows).toEqual([]);
    await other.end();
  });

  it('rejects the queries under way if the connection is lost', async () => {
    const lost = client.query('SELECT pg_sleep(30)').catch((error: unknown) => error);
    client.connection.stream.destroy();
    expect(isDatabaseAway(await lost)).toBe(true);
  });
});
