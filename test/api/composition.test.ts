import type { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { claimDatabase } from '#platform/database/composition.js';
import { openPool } from '#platform/database/connection.js';
import { openDatabase } from '#platform/database/open-database.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { RecordingLog } from '../support/recording-log.js';

describe('a database belongs to the composition that created it', () => {
  let database: TestDatabase;
  let dataSource: DataSource;

  beforeEach(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 25);
  });
  afterEach(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  it('accepts its own composition again', async () => {
    await claimDatabase(dataSource, 'production');
    await expect(claimDatabase(dataSource, 'production')).resolves.toBeUndefined();
  });

  it.each([
    ['demo', 'production'],
    ['production', 'demo'],
    ['test', 'production'],
  ] as const)('created by %s, refuses %s with an error that names both', async (maker, other) => {
    await claimDatabase(dataSource, maker);
    await expect(claimDatabase(dataSource, other)).rejects.toThrow(
      `made by the ${maker} composition, and the ${other} composition refuses to start on it`,
    );
    await expect(openDatabase(database.config, other, new RecordingLog())).rejects.toThrow(
      `made by the ${maker} composition`,
    );
    await expect(claimDatabase(dataSource, maker)).resolves.toBeUndefined();
  });

  it('refuses before it migrates: the other composition finds its database unchanged', async () => {
    await claimDatabase(dataSource, 'production');
    await dataSource.query("DELETE FROM schema_migrations WHERE name LIKE '%audit%'");
    await dataSource.query('DROP TABLE audit_events CASCADE');
    await expect(openDatabase(database.config, 'demo', new RecordingLog())).rejects.toThrow(
      'refuses',
    );
    const [table] = await dataSource.query("SELECT to_regclass('audit_events') AS name");
    expect(table).toEqual({ name: null });
  });

  it('belongs to one composition after a race of 20 claims of two', async () => {
    const claims = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        claimDatabase(dataSource, i % 2 === 0 ? 'production' : 'demo'),
      ),
    );
    const outcome = claims.map(({ status }) => status);
    expect(new Set(outcome.filter((_, i) => i % 2 === 0)).size).toBe(1);
    expect(new Set(outcome.filter((_, i) => i % 2 === 1)).size).toBe(1);
    expect(outcome.filter((status) => status === 'fulfilled')).toHaveLength(10);
  });
});
