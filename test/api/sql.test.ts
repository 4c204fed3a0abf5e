import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPool } from '#platform/database/connection.js';
import { sqlStateOf, violatedConstraint } from '#platform/database/statements/faults.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { RecordingLog } from '../support/recording-log.js';

describe('the sql tag', () => {
  let database: TestDatabase;
  let dataSource: DataSource;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 25);
    await sql(dataSource.manager)`
      CREATE TABLE codes (id integer PRIMARY KEY, used_at timestamptz, note text)`;
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  it('returns rows in one shape for INSERT, SELECT, UPDATE, WITH and DELETE', async () => {
    const tx = dataSource.manager;
    const rows = [{ id: 1, note: 'one' }];
    expect(
      await sql(tx)`INSERT INTO codes (id, note) VALUES (1, ${'one'}) RETURNING id, note`,
    ).toEqual(rows);
    expect(await sql(tx)`SELECT id, note FROM codes WHERE id = ${1}`).toEqual(rows);
    expect(
      await sql(tx)`UPDATE codes SET note = ${'one'} WHERE id = ${1} RETURNING id, note`,
    ).toEqual(rows);
    expect(
      await sql(tx)`
        WITH changed AS (UPDATE codes SET note = note WHERE id = ${1} RETURNING id, note)
        SELECT id, note FROM changed`,
    ).toEqual(rows);
    expect(await sql(tx)`UPDATE codes SET note = 'none' WHERE id = ${99} RETURNING id`).toEqual([]);
    expect(await sql(tx)`DELETE FROM codes WHERE id = ${1} RETURNING id, note`).toEqual(rows);
    expect(await sql(tx)`DELETE FROM codes WHERE id = ${1}`).toEqual([]);
  });

  it('binds every value, so that none is ever read as SQL', async () => {
    const hostile = `'); DROP TABLE codes; --`;
    const [row] = await sql<{ text: string }>(dataSource.manager)`SELECT ${hostile}::text AS text`;
    expect(row?.text).toBe(hostile);
  });

  it('binds the values of fragments in place, also of nested fragments', async () => {
    const inner = fragment`${'c'}::text || ${'); DROP TABLE codes; --'}`;
    const outer = fragment`${'b'}::text || ${inner}`;
    for (const first of ['a', 'x']) {
      const [row] = await sql<{ text: string }>(
        dataSource.manager,
      )`SELECT ${first}::text || ${outer} || ${'d'} AS text`;
      expect(row?.text).toBe(`${first}bc); DROP TABLE codes; --d`);
    }
  });

  it('binds the values beside constant fragments, also when another fragment takes their place', async () => {
    const [one, two] = [fragment`1`, fragment`2`];
    const add = (left: unknown, right: unknown) =>
      sql<{ sum: number }>(dataSource.manager)`SELECT ${left}::int + ${right}::int AS sum`;
    expect(await add(one, 10)).toEqual([{ sum: 11 }]);
    expect(await add(one, 20)).toEqual([{ sum: 21 }]);
    expect(await add(two, 20)).toEqual([{ sum: 22 }]);
    expect(await add(20, one)).toEqual([{ sum: 21 }]);
    expect(await add(fragment`${5}`, one)).toEqual([{ sum: 6 }]);
  });

  it('has exactly one winner when 20 redeem the same code at once', async () => {
    await sql(dataSource.manager)`INSERT INTO codes (id) VALUES (2)`;
    const attempts = await Promise.all(
      Array.from({ length: 20 }, () =>
        dataSource.transaction(
          (tx) =>
            sql(tx)`
              UPDATE codes SET used_at = now() WHERE id = 2 AND used_at IS NULL RETURNING id`,
        ),
      ),
    );
    expect(attempts.filter((won) => won.length === 1)).toHaveLength(1);
    expect(attempts.filter((won) => won.length === 0)).toHaveLength(19);
  });

  it('releases its connection when the statement fails', async () => {
    await sql(dataSource.manager)`INSERT INTO codes (id) VALUES (3)`;
    for (let i = 0; i < 30; i += 1) {
      const failure = await sql(dataSource.manager)`INSERT INTO codes (id) VALUES (3)`.catch(
        (error: unknown) => error,
      );
      expect(sqlStateOf(failure)).toBe('23505');
      expect(violatedConstraint(failure)).toBe('codes_pkey');
    }
  });

  it('continues after a migration has changed the type of a column', async () => {
    const read = () => sql(dataSource.manager)`SELECT note FROM codes WHERE id = ${7}`;
    await sql(dataSource.manager)`INSERT INTO codes (id, note) VALUES (7, ${'seven'})`;
    // So many queries at once that each pooled connection prepares the statement.
    await Promise.all(Array.from({ length: 25 }, read));
    await dataSource.query('ALTER TABLE codes ALTER COLUMN note TYPE varchar(300)');
    const answers = await Promise.all(Array.from({ length: 25 }, read));
    expect(answers).toEqual(Array.from({ length: 25 }, () => [{ note: 'seven' }]));
  });
});
