import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import type { Config } from '#platform/config/config.js';
import { makeTemporaryDirectory, removeDirectory } from './temporary-directory.js';
import { administer, confirmServer, urlOf } from './test-server.js';

/**
 * A migrated database for one test file. No composition root (production, demo or tests) has marked
 * it as its own yet.
 */
export interface TestDatabase {
  readonly name: string;
  /**
   * The URL of the database, for this process and for the variable SVC_DATABASE_URL of a child
   * process.
   */
  readonly url: string;
  readonly config: Config['database'];
  /** Deletes the database, even with open connections. */
  drop(): Promise<void>;
}

/**
 * Creates a copy of this run's migrated template. Records in it which server it is on, as a start
 * of the service does. A test file calls this once, and `drop` at its end.
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  const database = await create(copyOf(inject('testServer').template));
  await confirmServer(database.url);
  return database;
}

/** Creates an empty database, for the tests of the migrations themselves. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return create('');
}

/**
 * Copies a database with all its content, as if a standby had replicated it. Fails if a connection
 * to the original is open.
 */
export function copyDatabase({ name }: TestDatabase): Promise<TestDatabase> {
  return create(copyOf(name));
}

/**
 * Returns the SQL option that copies a database by its files. This takes half the time of a copy
 * through the write-ahead log.
 */
function copyOf(template: string): string {
  return `TEMPLATE ${template} STRATEGY FILE_COPY`;
}

async function create(options: string): Promise<TestDatabase> {
  const server = inject('testServer');
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await administer(server, `CREATE DATABASE ${name} ${options}`);
  const dataDir = await makeTemporaryDirectory();
  const url = urlOf(server, name);
  return {
    name,
    url,
    config: {
      url,
      dataDir,
      maxConnections: 25,
      failover: undefined,
      pooler: undefined,
      directUrl: undefined,
    },
    drop: async () => {
      await administer(server, `DROP DATABASE ${name} WITH (FORCE)`);
      await removeDirectory(dataDir);
    },
  };
}
