import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import type { Logger } from '@nestjs/common';
import type {
  DataSource,
  EntityManager,
  QueryRunner,
} from '#platform/database/statements/typeorm.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { sql } from '#platform/database/statements/sql.js';
import { switchOffCompilation } from './compilation.js';

/** The folder of migrations; `src/` and `dist/` are equally deep below the package. */
const MIGRATIONS = new URL('../../../migrations/', import.meta.url);

interface Migration {
  readonly name: string;
  readonly text: string;
  readonly sha256: string;
}

/**
 * Applies the missing migrations in the order of their names: forward only, one transaction per file, under an advisory lock so
 * that replicas that start together do not collide. It also switches off the compilation of statements. Migrations that only the database knows are ignored: during a rolling
 * deployment the newer replica may migrate first.
 *
 * @param dataSource a data source without a client-side query timeout, since another process's migration may take long
 * @throws Error when an applied file was changed, or a file fails; earlier files stay applied
 */
export async function migrate(
  dataSource: DataSource,
  log: Logger,
  directory: URL = MIGRATIONS,
): Promise<void> {
  const migrations = await readMigrations(directory);
  const runner = dataSource.createQueryRunner();
  try {
    await takeLock(runner, log);
    const applied = await appliedMigrations(runner.manager);
    for (const migration of migrations) {
      const sha256 = applied.get(migration.name);
      if (sha256 === undefined) await apply(runner.manager, migration, log);
      else if (sha256 !== migration.sha256) throw changedSince(migration);
    }
    await switchOffCompilation(runner.manager, log);
  } finally {
    // Releases the lock. A lost connection has released it already, and its error is being thrown.
    await runner.query('RESET ALL; SELECT pg_advisory_unlock_all()').catch(() => undefined);
    await runner.release();
  }
}

/** The names of the migrations that a database and this version do not share. */
export interface MigrationDifference {
  /** Those that the database lacks. */
  readonly missing: readonly string[];
  /** Those that this version lacks: a later version has migrated the database. */
  readonly later: readonly string[];
}

/** Compares the migrations of a database with those of this version. It changes nothing. @throws Error for one that was changed */
export async function compareMigrations(
  manager: EntityManager,
  directory: URL = MIGRATIONS,
): Promise<MigrationDifference> {
  const rows = await sql<{ name: string; sha256: string }>(manager)`
    SELECT name, sha256 FROM schema_migrations`;
  const applied = new Map(rows.map((row) => [row.name, row.sha256]));
  const migrations = await readMigrations(directory);
  for (const migration of migrations) {
    if ((applied.get(migration.name) ?? migration.sha256) !== migration.sha256) {
      throw changedSince(migration);
    }
  }
  const names = new Set(migrations.map(({ name }) => name));
  return {
    missing: [...names].filter((name) => !applied.has(name)),
    later: [...applied.keys()].filter((name) => !names.has(name)),
  };
}

async function readMigrations(directory: URL): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).toSorted();
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, directory), 'utf8');
      return { name, text, sha256: createHash('sha256').update(text).digest('hex') };
    }),
  );
}

/** Takes the lock of migrations, without time limits of the server or the role for the wait and for long migrations. */
async function takeLock(runner: QueryRunner, log: Logger): Promise<void> {
  await runner.query('SET statement_timeout = 0; SET lock_timeout = 0');
  const [attempt] = await sql<{ taken: boolean }>(runner.manager)`
    SELECT pg_try_advisory_lock(${ADVISORY_LOCKS.migrations}) AS taken`;
  if (attempt?.taken) return;
  log.log('Another process is migrating the database: waiting for it');
  await sql(runner.manager)`SELECT pg_advisory_lock(${ADVISORY_LOCKS.migrations})`;
}

/** Returns the applied migrations. It creates their table only if it is missing, so that a role without that right can start. */
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

async function apply(manager: EntityManager, migration: Migration, log: Logger): Promise<void> {
  const { name, text, sha256 } = migration;
  try {
    await manager.transaction(async (tx) => {
      await tx.query(text); // without parameters PostgreSQL takes a whole script
      await sql(tx)`INSERT INTO schema_migrations (name, sha256) VALUES (${name}, ${sha256})`;
    });
  } catch (cause) {
    throw new Error(`Migration ${name} failed and was rolled back: ${reasonOf(cause)}`, { cause });
  }
  log.log(`Applied migration ${name}`);
}

function changedSince({ name }: Migration): Error {
  return new Error(
    `Migration ${name} was changed after it was applied. Restore the file and write a new migration instead.`,
  );
}
