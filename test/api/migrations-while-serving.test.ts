import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { openMigrationConnection } from '#platform/database/connection.js';
import { migrate, migrateInBackground } from '#platform/database/migrations.js';
import { createEmptyDatabase, type TestDatabase } from '../support/database.js';
import { RecordingLog } from '../support/recording-log.js';
import { rows } from '../support/rows.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const TABLE = `CREATE TABLE people (id integer PRIMARY KEY, name text NOT NULL, key text);
  INSERT INTO people SELECT n, 'person ' || n FROM generate_series(1, 2500) n`;
const INDEX = `-- background\nCREATE INDEX CONCURRENTLY people_name ON people (name); -- for searches\n`;
/**
 * The longest time in milliseconds for which another statement may wait behind a migration that
 * waits for a lock.
 */
const PAUSE = 1_000;

describe('migrations while other replicas serve', () => {
  let database: TestDatabase;
  let folder: string;
  let log: RecordingLog;
  let dataSources: DataSource[];
  let first: DataSource;

  beforeEach(async () => {
    database = await createEmptyDatabase();
    folder = await makeTemporaryDirectory();
    log = new RecordingLog();
    dataSources = [];
    first = await open();
    await write('1-people.sql', TABLE);
    await run(first);
  });
  afterEach(async () => {
    for (const each of dataSources) if (each.isInitialized) await each.destroy();
    await database.drop();
    await removeDirectory(folder);
  });

  async function open(): Promise<DataSource> {
    const dataSource = await openMigrationConnection({ connectionString: database.url }, log);
    dataSources.push(dataSource);
    return dataSource;
  }
  const directory = () => new URL(`${pathToFileURL(folder).href}/`);
  const write = (name: string, text: string) => writeFile(join(folder, name), text);
  const run = (dataSource: DataSource) => migrate(dataSource, log, directory());
  const build = (dataSource: DataSource) =>
    migrateInBackground(dataSource, log, { directory: directory() });
  const indexes = () =>
    rows<{ name: string; valid: boolean }>(
      first,
      `SELECT indexrelid::regclass::text AS name, indisvalid AS valid FROM pg_index
       WHERE indexrelid::regclass::text LIKE '%people_name%' ORDER BY 1`,
    );

  it('start without the indexes of an upgrade, which are built afterwards, once', async () => {
    await write('2-index.sql', INDEX);
    expect(await run(first)).toBe(true);
    expect(await indexes()).toEqual([]);
    await Promise.all([build(first), build(await open())]);
    expect(await indexes()).toEqual([{ name: 'people_name', valid: true }]);
    expect(log.lines.filter((line) => line === 'log Applied migration 2-index.sql')).toHaveLength(
      1,
    );
    expect(await run(first)).toBe(false);
  });

  it('build an index again that an earlier build left invalid', async () => {
    await write('2-index.sql', INDEX);
    const [writer, builder] = [await open(), await open()];
    const held = writer.createQueryRunner();
    await held.startTransaction();
    await held.query(`INSERT INTO people VALUES (0, 'in a long transaction')`);
    const killed = build(builder).catch((error: unknown) => error);
    await expect.poll(indexes).toEqual([{ name: 'people_name', valid: false }]);
    await first.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%'`,
    );
    expect(await killed).toMatchObject({ message: expect.stringContaining('can be continued') });
    await held.commitTransaction();
    await held.release();
    await build(await open());
    expect(await indexes()).toEqual([{ name: 'people_name', valid: true }]);
  });

  it('build an index of a partitioned table one partition after the other', async () => {
    await first.query(`
      CREATE TABLE logs (id integer, day date) PARTITION BY RANGE (day);
      CREATE TABLE "Logs of 2025" PARTITION OF logs FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
      CREATE TABLE logs_2026 PARTITION OF logs FOR VALUES FROM ('2026-01-01') TO ('2027-01-01') PARTITION BY RANGE (id);
      CREATE TABLE logs_2026_low PARTITION OF logs_2026 FOR VALUES FROM (0) TO (100)`);
    await write(
      '2-index.sql',
      '-- background\nCREATE UNIQUE INDEX CONCURRENTLY logs_day ON logs (day, id)',
    );
    // A crash can leave this: the index of the whole table is not valid, and the index of one
    // partition is attached to it.
    await first.query(`CREATE UNIQUE INDEX logs_day ON ONLY logs (day, id);
      CREATE UNIQUE INDEX "Logs of 2025_logs_day" ON "Logs of 2025" (day, id);
      ALTER INDEX logs_day ATTACH PARTITION "Logs of 2025_logs_day"`);
    await build(first);
    const built = await rows(
      first,
      `SELECT indexrelid::regclass::text AS name FROM pg_index
       WHERE indrelid::regclass::text ILIKE '%logs%' AND indisunique AND indisvalid ORDER BY 1`,
    );
    expect(built).toEqual(
      [
        '"Logs of 2025_logs_day"',
        'logs_2026_logs_day',
        'logs_2026_low_logs_2026_logs_day',
        'logs_day',
      ].map((name) => ({ name })),
    );
  });

  it('drop an index of a partitioned table after long transactions, for which no other waits', async () => {
    await first.query(`
      CREATE TABLE logs (id integer, day date) PARTITION BY RANGE (day);
      CREATE TABLE logs_2026 PARTITION OF logs FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
      CREATE INDEX logs_day ON logs (day)`);
    await write('2-index.sql', '-- background\nDROP INDEX CONCURRENTLY IF EXISTS logs_day');
    const reader = (await open()).createQueryRunner();
    await reader.startTransaction();
    await reader.query('SELECT FROM logs_2026');
    const dropped = build(await open());
    await expect
      .poll(() =>
        log.lines.filter((line) => line.startsWith('log The end of index logs_day waits')),
      )
      .toHaveLength(1);
    await first.query(
      `SET lock_timeout = '20ms'; INSERT INTO logs VALUES (1, '2026-01-01'); RESET lock_timeout`,
    );
    const waiting = await rows(
      first,
      `SELECT pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database
       WHERE d.datname = current_database() AND NOT l.granted`,
    );
    expect(waiting).toEqual([]);
    await reader.rollbackTransaction();
    await reader.release();
    await dropped;
    expect(await rows(first, `SELECT to_regclass('logs_day') AS name`)).toEqual([{ name: null }]);
    // A crash after the drop lets the file run again.
    await write('3-index.sql', '-- background\nDROP INDEX CONCURRENTLY IF EXISTS logs_day');
    await build(first);
  });

  it('wait for their turn without a snapshot, which would hold up the build of an index', async () => {
    const [holder, waiting, builder] = [await open(), await open(), await open()];
    await holder.query(`SELECT pg_advisory_lock(${ADVISORY_LOCKS.migrations})`);
    const start = run(waiting);
    await expect
      .poll(() => log.lines)
      .toContain('log Another process is migrating the database: waiting for it');
    await builder.query('CREATE INDEX CONCURRENTLY people_name ON people (name)');
    expect(await indexes()).toEqual([{ name: 'people_name', valid: true }]);
    await holder.query('SELECT pg_advisory_unlock_all()');
    await start;
  });

  it('let other statements through while they wait for a long transaction', async () => {
    await write('2-alter.sql', 'ALTER TABLE people ADD COLUMN age integer');
    const [reader, client] = [await open(), await open()];
    const backup = reader.createQueryRunner();
    await backup.startTransaction();
    await backup.query('SELECT count(*) FROM people');
    const migrated = run(first);
    const pauses: number[] = [];
    await expect
      .poll(
        async () => {
          const before = performance.now();
          await client.query(`UPDATE people SET name = 'renamed' WHERE id = 1`);
          pauses.push(performance.now() - before);
          return pauses.length >= 50;
        },
        { timeout: 90_000, interval: 20 },
      )
      .toBe(true);
    await backup.rollbackTransaction();
    await backup.release();
    await migrated;
    expect(Math.max(...pauses)).toBeLessThan(PAUSE);
    expect(await rows(first, 'SELECT age FROM people WHERE id = 1')).toEqual([{ age: null }]);
  });

  it('continue a change of many rows after the migrating process was killed', async () => {
    await first.query('CREATE TABLE done (id integer, batch text)');
    await write(
      '2-keys.sql',
      `-- batches of people by id where id > 100
       INSERT INTO done SELECT id, txid_current()::text FROM people
       WHERE id BETWEEN current_setting('migration.first')::int AND current_setting('migration.last')::int
         AND id > 100 AND key IS NULL;
       UPDATE people SET key = upper(name)
       WHERE id BETWEEN current_setting('migration.first')::int AND current_setting('migration.last')::int AND key IS NULL`,
    );
    const [holder, migrating] = [await open(), await open()];
    const held = holder.createQueryRunner();
    await held.startTransaction();
    await held.query('SELECT FROM people WHERE id = 1500 FOR UPDATE');
    const [session] = await rows<{ pid: number }>(migrating, 'SELECT pg_backend_pid() AS pid');
    const killed = run(migrating).catch((error: unknown) => error);
    await expect.poll(() => rows(first, 'SELECT FROM done')).toHaveLength(1250);
    await first.query('SELECT pg_terminate_backend($1)', [session?.pid]);
    expect(await killed).toBeInstanceOf(Error);
    await held.rollbackTransaction();
    await held.release();
    await run(await open());
    const [result] = await rows(
      first,
      `SELECT count(*)::int AS rows, count(DISTINCT id)::int AS ids, count(DISTINCT batch)::int AS batches FROM done`,
    );
    expect(result).toEqual({ rows: 2400, ids: 2400, batches: 10 });
  });

  it('refuse a statement in the background that is none of those for indexes and constraints', async () => {
    await write('2-index.sql', '-- background\nCREATE INDEX people_name ON people (name)');
    await expect(build(first)).rejects.toThrow(
      /2-index\.sql .* can only CREATE INDEX CONCURRENTLY/,
    );
  });
});
