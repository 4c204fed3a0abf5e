import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { openMigrationConnection } from '#platform/database/connection.js';
import { migrate } from '#platform/database/migrations.js';
import { createEmptyDatabase, type TestDatabase } from '../support/database.js';
import { RecordingLog } from '../support/recording-log.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

describe('migrations', () => {
  let database: TestDatabase;
  let folder: string;
  let log: RecordingLog;
  let dataSources: DataSource[];

  beforeEach(async () => {
    database = await createEmptyDatabase();
    folder = await makeTemporaryDirectory();
    log = new RecordingLog();
    dataSources = [];
  });
  afterEach(async () => {
    for (const dataSource of dataSources) await dataSource.destroy();
    await database.drop();
    await removeDirectory(folder);
  });

  async function open(): Promise<DataSource> {
    const dataSource = await openMigrationConnection({ connectionString: database.url }, log);
    dataSources.push(dataSource);
    return dataSource;
  }
  const write = (name: string, text: string) => writeFile(join(folder, name), text);
  const run = (dataSource: DataSource) =>
    migrate(dataSource, log, new URL(`${pathToFileURL(folder).href}/`));
  it('apply the whole schema to an empty database, and nothing the second time', async () => {
    const dataSource = await open();
    await migrate(dataSource, log);
    const first = await applied(dataSource);
    expect(first).toContain('1763683200000-deployment.sql');
    expect(log.lines).toEqual(first.map((name) => `log Applied migration ${name}`));
    await migrate(dataSource, log);
    expect(log.lines).toHaveLength(first.length);
  });

  it('leave no two indexes that are the same, because each one costs every write', async () => {
    const dataSource = await open();
    await migrate(dataSource, log);
    const same = `SELECT array_agg(indexrelid::regclass::text ORDER BY indexrelid) AS same FROM pg_index
      WHERE indrelid::regclass::text NOT LIKE 'pg_%'
      GROUP BY indrelid, indkey, indclass, indcollation, indoption, pg_get_expr(indexprs, indrelid), pg_get_expr(indpred, indrelid)
      HAVING count(*) > 1`;
    expect(await dataSource.query(same)).toEqual([]);
    await dataSource.query('CREATE INDEX planted ON users (id)');
    expect(await dataSource.query(same)).toEqual([{ same: ['users_pkey', 'planted'] }]);
  });

  it('run in the order of their names, several statements a file', async () => {
    await write(
      '2-fill.sql',
      `INSERT INTO letters VALUES ('a'); INSERT INTO letters VALUES ('b');`,
    );
    await write('1-make.sql', 'CREATE TABLE letters (letter text PRIMARY KEY)');
    const dataSource = await open();
    await run(dataSource);
    expect(await applied(dataSource)).toEqual(['1-make.sql', '2-fill.sql']);
    expect(await dataSource.query('SELECT letter FROM letters ORDER BY letter')).toHaveLength(2);
  });

  it('are applied once by replicas that start together, and both succeed', async () => {
    await write('1-slow.sql', 'SELECT pg_advisory_xact_lock(1); CREATE TABLE once (id integer)');
    const [first, second, holder] = [await open(), await open(), await open()];
    await holder.query('SELECT pg_advisory_lock(1)');
    const runs = Promise.all([run(first), run(second)]);
    await expect.poll(() => log.lines).toHaveLength(1);
    await holder.query('SELECT pg_advisory_unlock(1)');
    await runs;
    expect(log.lines.toSorted()).toEqual([
      'log Another process is migrating the database: waiting for it',
      'log Applied migration 1-slow.sql',
    ]);
  });

  it('wait for the lock beyond every timeout of the server', async () => {
    await write('1-quick.sql', 'CREATE TABLE quick (id integer)');
    const [waiting, holder] = [await open(), await open()];
    await holder.query(`ALTER DATABASE ${database.name} SET lock_timeout = '40ms'`);
    await holder.query(`ALTER DATABASE ${database.name} SET statement_timeout = '40ms'`);
    const limited = await open();
    const limitOf = () =>
      limited.query(`SELECT setting, reset_val FROM pg_settings WHERE name = 'statement_timeout'`);
    expect(await limitOf()).toEqual([{ setting: '0', reset_val: '40' }]);
    await waiting.query(`SELECT pg_advisory_lock(${ADVISORY_LOCKS.migrations})`);
    const migrated = run(limited);
    await holder.query('SELECT pg_sleep(0.05)');
    await waiting.query(`SELECT pg_advisory_unlock(${ADVISORY_LOCKS.migrations})`);
    await expect(migrated).resolves.toBe(false);
    expect(await limitOf()).toEqual([{ setting: '40', reset_val: '40' }]);
  });

  it('refuse a file that was changed after it was applied', async () => {
    await write('1-make.sql', 'CREATE TABLE letters (letter text)');
    const dataSource = await open();
    await run(dataSource);
    await write('1-make.sql', 'CREATE TABLE letters (letter varchar)');
    await expect(run(dataSource)).rejects.toThrow(/1-make\.sql was changed after it was applied/);
  });

  it('roll a failing file back whole, keep those before it, and continue after it is corrected', async () => {
    await write('1-make.sql', 'CREATE TABLE letters (letter text)');
    await write('2-broken.sql', `INSERT INTO letters VALUES ('a'); SELECT nonsense;`);
    const dataSource = await open();
    await expect(run(dataSource)).rejects.toThrow(/2-broken\.sql failed .*"nonsense"/);
    expect(await applied(dataSource)).toEqual(['1-make.sql']);
    expect(await dataSource.query('SELECT letter FROM letters')).toEqual([]);
    await write('2-broken.sql', `INSERT INTO letters VALUES ('a')`);
    await run(dataSource);
    expect(await applied(dataSource)).toEqual(['1-make.sql', '2-broken.sql']);
  });

  it('tolerate a database that is ahead of this version, as in a rolling deployment', async () => {
    await write('1-make.sql', 'CREATE TABLE letters (letter text)');
    const dataSource = await open();
    await run(dataSource);
    await dataSource.query(
      `INSERT INTO schema_migrations (name, sha256) VALUES ('9-of-the-future.sql', 'unknown')`,
    );
    await expect(run(dataSource)).resolves.toBe(false);
  });
});

async function applied(dataSource: DataSource): Promise<string[]> {
  const rows = await dataSource.query<{ name: string }[]>(
    'SELECT name FROM schema_migrations ORDER BY name',
  );
  return rows.map((row) => row.name);
}
