import { DataSource } from 'typeorm';
import { afterAll, beforeAll } from 'vitest';
import { createTestDatabase } from './database.js';

/**
 * Creates a database before the tests of a file, and deletes it after them. Returns a function that
 * returns the connection to it.
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
