import type { Logger } from '@nestjs/common';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { sql } from '#platform/database/statements/sql.js';
import { runInBackground } from '#platform/database/migration-steps/background.js';
import { runInBatches } from '#platform/database/migration-steps/batches.js';
import { runMove } from '#platform/database/migration-steps/move.js';
import {
  assertUnchanged,
  MIGRATIONS,
  readMigrations,
  type Migration,
} from '#platform/database/migration-steps/migration-files.js';
import {
  inTurn,
  withShortLocks,
  type Turn,
} from '#platform/database/migration-steps/short-locks.js';
import { switchOffCompilation } from './session-settings/compilation.js';

const START: Turn = {
  key: ADVISORY_LOCKS.migrations,
  waiting: 'Another process is migrating the database: waiting for it',
  pollEvery: 100,
};
const BACKGROUND: Turn = {
  key: ADVISORY_LOCKS.backgroundMigrations,
  waiting:
    'Another process runs the background migrations of this version (indexes, and moves of rows)',
  pollEvery: 2_000,
};

/**
 * Applies the missing migrations that a start waits for, in the order of their names. No migration
 * is ever undone. An advisory lock keeps replicas that start together from migrating at the same
 * time. The function also switches off the compilation of statements (JIT). Migrations that the
 * database has and this version lacks are ignored: during a rolling deployment, a replica of a
 * newer version may migrate first.
 *
 * @param dataSource a data source without a client-side query timeout, because a migration may take
 *   long
 * @returns true if background migrations are missing, which {@link migrateInBackground} runs; false
 *   for a new database, in which this function runs them too
 * @throws Error if an applied file was changed, or a file fails; earlier files stay applied
 */
export async function migrate(
  dataSource: DataSource,
  log: Logger,
  directory: URL = MIGRATIONS,
): Promise<boolean> {
  const migrations = await readMigrations(directory);
  return inTurn(dataSource, log, START, async (manager) => {
    const applied = await appliedMigrations(manager);
    for (const migration of migrations) {
      const sha256 = applied.get(migration.name);
      if (sha256 !== undefined) assertUnchanged(migration, sha256);
      else if (!migration.isBackground || applied.size === 0) await apply(manager, log, migration);
    }
    await switchOffCompilation(manager, log);
    return applied.size > 0 && missingInBackground(migrations, applied).length > 0;
  });
}

/**
 * Runs the background migrations, for which no start waits: they build indexes or move the rows of
 * a table while the service already runs. One process runs them. The others wait until that process
 * has finished or ended, and then run the migrations that are still missing.
 *
 * @throws Error if a file fails; earlier files stay applied
 */
export async function migrateInBackground(
  dataSource: DataSource,
  log: Logger,
  { directory = MIGRATIONS, signal }: { directory?: URL; signal?: AbortSignal } = {},
): Promise<void> {
  const migrations = await readMigrations(directory);
  await inTurn(dataSource, log, { ...BACKGROUND, ...(signal && { signal }) }, async (manager) => {
    const missing = missingInBackground(migrations, await appliedMigrations(manager));
    for (const migration of missing) {
      log.log(`Migration ${migration.name} runs in the background`);
      await apply(manager, log, migration);
    }
  });
}

function missingInBackground(
  migrations: readonly Migration[],
  applied: ReadonlyMap<string, string>,
): Migration[] {
  return migrations.filter(({ name, isBackground }) => isBackground && !applied.has(name));
}

/** The names of the migrations that only a database has, or only this version. */
export interface MigrationDifference {
  /**
   * The migrations that the database lacks, apart from background migrations, for which no start
   * waits.
   */
  readonly missing: readonly string[];
  /** The migrations that this version lacks, because a later version has migrated the database. */
  readonly later: readonly string[];
}

/**
 * Compares the migrations of a database with those of this version, and changes nothing.
 * @throws Error for a migration file that was changed after the database ran it
 */
export async function compareMigrations(
  manager: EntityManager,
  directory: URL = MIGRATIONS,
): Promise<MigrationDifference> {
  const rows = await sql<{ name: string; sha256: string }>(manager)`
    SELECT name, sha256 FROM schema_migrations`;
  const applied = new Map(rows.map((row) => [row.name, row.sha256]));
  const migrations = await readMigrations(directory);
  for (const migration of migrations) {
    assertUnchanged(migration, applied.get(migration.name) ?? migration.sha256);
  }
  const names = new Set(migrations.map(({ name }) => name));
  const needed = migrations.filter(({ isBackground }) => !isBackground);
  return {
    missing: needed.map(({ name }) => name).filter((name) => !applied.has(name)),
    later: [...applied.keys()].filter((name) => !names.has(name)),
  };
}

/**
 * Returns the SHA-256 of each migration that the database has run, by the name of its file. It
 * creates the table of these migrations only if it is missing, so that a role without the right to
 * create tables can start.
 */
async function appliedMigrations(manager: EntityManager): Promise<Map<string, string>> {
  const [table] = await sql<{ known: boolean }>(manager)`
    SELECT to_regclass('schema_migrations') IS NOT NULL AS known`;
  if (!table?.known) {
    await sql(manager)`
      CREATE TABLE schema_migrations (
        name       text        PRIMARY KEY,
        sha256     text        NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
      )`;
  }
  const rows = await sql<{ name: string; sha256: string }>(manager)`
    SELECT name, sha256 FROM schema_migrations`;
  return new Map(rows.map((row) => [row.name, row.sha256]));
}

async function apply(manager: EntityManager, log: Logger, migration: Migration): Promise<void> {
  const { name, text, sha256 } = migration;
  const record = (tx: EntityManager) =>
    sql(tx)`INSERT INTO schema_migrations (name, sha256) VALUES (${name}, ${sha256})`;
  try {
    if (migration.move) {
      await runMove(manager, log, migration, migration.move);
      await record(manager);
    } else if (migration.isBackground) {
      await runInBackground(manager, log, migration);
      await record(manager);
    } else if (migration.batches) {
      await runInBatches(manager, log, migration, migration.batches);
      await record(manager);
    } else {
      await withShortLocks(manager, log, `Migration ${name}`, async (tx) => {
        await tx.query(text); // without parameters, one query may have several statements
        await record(tx);
      });
    }
  } catch (cause) {
    const end =
      migration.isBackground || migration.batches ? 'can be continued' : 'was rolled back';
    throw new Error(`Migration ${name} failed and ${end}: ${reasonOf(cause)}`, { cause });
  }
  log.log(`Applied migration ${name}`);
}
