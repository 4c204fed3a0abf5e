import { Query, type Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DriverClient } from '#platform/database/hosts/driver-client.js';
import { isDatabaseAway } from '#platform/database/statements/faults.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

/** The time limit of a query that the server answers late, in milliseconds. */
const LIMIT = 150;

const SLOW = 'SELECT pg_sleep(30)';

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

  const newClient = (limit: number): Client =>
    new DriverClient({ connectionString: database.url, query_timeout: limit });

  beforeEach(async () => {
    client = newClient(20_000);
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
    const hasty = newClient(LIMIT);
    hasty.on('error', () => undefined);
    await hasty.connect();
    const errors = await Promise.all([
      hasty.query(SLOW).catch((error: unknown) => error),
      hasty.query("INSERT INTO notes VALUES ('late')").catch((error: unknown) => error),
    ]);
    expect(errors.map(String)).toEqual(Array(2).fill('Error: Query read timeout'));
    expect(errors.every(isDatabaseAway)).toBe(true);

    const { processID } = hasty as unknown as { processID: number };
    await client.query('SELECT pg_cancel_backend($1)', [processID]);
    // The connection is free again once the server has answered.
    await expect
      .poll(() => hasty.query('SELECT 1 AS n').then(({ rows }) => rows, String))
      .toEqual([{ n: 1 }]);
    expect((await client.query('SELECT note FROM notes')).rows).toEqual([]);
    await hasty.end();
  });

  it.each([
    ['the limit of the query itself', 20_000, { query_timeout: LIMIT }],
    ['a callback', LIMIT, {}],
    ['a query of the driver', LIMIT, {}],
  ])('ends the wait by %s', async (what, limit, own) => {
    const hasty = newClient(limit);
    hasty.on('error', () => undefined);
    await hasty.connect();
    const ended = Promise.withResolvers<unknown>();
    const end = (error: unknown) => ended.resolve(error);
    const config = { text: SLOW, ...own };
    if (what === 'a callback') hasty.query(config, end);
    else if (what === 'a query of the driver') {
      hasty.query(Object.assign(new Query(config), { callback: end }));
    } else hasty.query(config).catch(end);
    expect(String(await ended.promise)).toBe('Error: Query read timeout');
    hasty.connection.stream.destroy();
  });

  it('rejects the queries under way if the connection is lost', async () => {
    const lost = client.query(SLOW).catch((error: unknown) => error);
    client.connection.stream.destroy();
    expect(isDatabaseAway(await lost)).toBe(true);
  });
});
