import type { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { claimDatabase } from '#platform/database/composition.js';
import { openPool } from '#platform/database/connection.js';
import { openDatabase } from '#platform/database/open-database.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { RecordingLog } from '../support/recording-log.js';

describe('a database belongs to the composition that made it', () => {
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

  it('lets its own composition in again and again', async () => {
    await claimDatabase(dataSource, 'production');
    await expect(claimDatabase(dataSource, 'production')).resolves.toBeUndefined();
  });

  it.each([
    ['demo', 'production'],
    ['production', 'demo'],
    ['test', 'production'],
  ] as const)('made by %s, it refuses %s and says so', async (maker, other) => {
    await claimDatabase(dataSource, maker);
    await expect(claimDatabase(dataSource, other)).rejects.toThrow(
      `made by the ${maker} composition, and the ${other} composition refuses to start on it`,
    );
    await expect(openDatabase(database.config, other, new RecordingLog())).rejects.toThrow(
      `made by the ${maker} composition`,
    );
    await expect(claimDatabase(dataSource, maker)).resolves.toBeUndefined();
  });

  it('refuses before it migrates: the other composition finds its database as it was', async () => {
    await claimDatabase(dataSource, 'production');
    await dataSource.query("DELETE FROM schema_migrations WHERE name LIKE '%audit%'");
    await dataSource.query('DROP TABLE audit_events');
    await expect(openDatabase(database.config, 'demo', new RecordingLog())).rejects.toThrow(
      'refuses',
    );
    const [table] = await dataSource.query("SELECT to_regclass('audit_events') AS name");
    expect(table).toEqual({ name: null });
  });

  it('has one maker when 20 claims of two compositions race', async () => {
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
