import { DataSource } from 'typeorm';
import { afterAll, beforeAll } from 'vitest';
import { createTestDatabase } from './database.js';

/**
 * Creates the database of a test file before its tests, and deletes it after them. Returns access
 * to it.
 */
export function fileDatabase(): () => DataSource {
  const parts = new AsyncDisposableStack();
  let dataSource: DataSource;
  beforeAll(async () => {
    const database = await createTestDatabase();
    parts.defer(() => database.drop());
    dataSource = new DataSource({ type: 'postgres', url: database.url, extra: { max: 20 } });
    await dataSource.initialize();
    parts.defer(() => dataSource.destroy());
  });
  afterAll(() => parts.disposeAsync());
  return () => dataSource;
}
