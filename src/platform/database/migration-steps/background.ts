import { createHash } from 'node:crypto';
import type { Logger } from '@nestjs/common';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Migration } from './migration-files.js';
import { withShortLocks } from './short-locks.js';

/** An index that a file of migrations creates. */
interface Index {
  readonly name: string;
  readonly table: string;
  /** The SQL before `INDEX`: `CREATE` or `CREATE UNIQUE`. */
  readonly create: string;
  /** The SQL after the name of the table: the columns, the condition, and other clauses. */
  readonly rest: string;
}

/** Writes a name as an identifier of SQL. */
const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** The largest number of bytes in a name. PostgreSQL cuts off the rest of a longer name. */
const NAME_LENGTH = 63;

const CREATE = /^(CREATE(?: UNIQUE)?) INDEX CONCURRENTLY ([a-z0-9_]+) ON ([a-z0-9_]+) *([^]+)$/;
const DROP = /^DROP INDEX CONCURRENTLY IF EXISTS ([a-z0-9_]+)$/;
const VALIDATE = /^ALTER TABLE [a-z0-9_]+ VALIDATE CONSTRAINT [a-z0-9_]+$/;

/**
 * Runs the statements of a migration file outside of a transaction. Inside of one, PostgreSQL
 * refuses CREATE INDEX CONCURRENTLY, which lets other statements write to the table meanwhile. The
 * file can be run again after a crash: an index that exists is not built again, and the other
 * statements can be repeated.
 *
 * @throws Error for a statement that is none of CREATE INDEX CONCURRENTLY, DROP INDEX CONCURRENTLY
 *   IF EXISTS and VALIDATE CONSTRAINT
 */
export async function runInBackground(
  manager: EntityManager,
  log: Logger,
  { name, text }: Migration,
): Promise<void> {
  for (const statement of statementsOf(text)) {
    const [, create = '', index = '', table = '', rest = ''] = CREATE.exec(statement) ?? [];
    const [, dropped = ''] = DROP.exec(statement) ?? [];
    if (index !== '') {
      await buildIndex(manager, log, { name: index, table, create, rest });
    } else if (dropped !== '') {
      await dropIndex(manager, log, dropped);
    } else if (VALIDATE.test(statement)) {
      await manager.query(statement);
    } else {
      throw new Error(
        `Migration ${name} runs in the background and can only CREATE INDEX CONCURRENTLY, DROP INDEX CONCURRENTLY IF EXISTS ` +
          `and VALIDATE CONSTRAINT. It has: ${statement}`,
      );
    }
  }
}

/**
 * Splits a migration file into its statements, without comments. It removes the text from every
 * `--` to the end of the line, and splits at every semicolon. So a string literal in the file must
 * contain neither.
 */
export function statementsOf(text: string): string[] {
  return text
    .replaceAll(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

/**
 * Builds an index if it is missing. If an earlier build was interrupted, its incomplete index is
 * dropped first.
 */
async function buildIndex(manager: EntityManager, log: Logger, index: Index): Promise<void> {
  const [state] = await sql<{ is_partitioned: boolean; is_valid: boolean | null }>(manager)`
    SELECT t.relkind = 'p' AS is_partitioned, i.indisvalid AS is_valid
    FROM pg_class t LEFT JOIN pg_index i ON i.indrelid = t.oid AND i.indexrelid = to_regclass(${quoted(index.name)})
    WHERE t.oid = to_regclass(${quoted(index.table)})`;
  if (state?.is_valid) return;
  if (state?.is_partitioned) return buildOnPartitions(manager, log, index, state.is_valid === null);
  if (state?.is_valid === false) {
    log.warn(`Index ${index.name} was left incomplete: building it again`);
    await manager.query(`DROP INDEX CONCURRENTLY ${quoted(index.name)}`);
  }
  await manager.query(
    `${index.create} INDEX CONCURRENTLY ${quoted(index.name)} ON ${quoted(index.table)} ${index.rest}`,
  );
}

/**
 * Drops an index if it exists. PostgreSQL refuses CONCURRENTLY for an index of a partitioned table,
 * whose partitions are then locked together, for a moment.
 */
async function dropIndex(manager: EntityManager, log: Logger, name: string): Promise<void> {
  const [found] = await sql<{ is_partitioned: boolean }>(manager)`
    SELECT relkind = 'I' AS is_partitioned FROM pg_class WHERE oid = to_regclass(${quoted(name)})`;
  if (!found) return;
  if (!found.is_partitioned) {
    await manager.query(`DROP INDEX CONCURRENTLY IF EXISTS ${quoted(name)}`);
    return;
  }
  await withShortLocks(manager, log, `The end of index ${name}`, (tx) =>
    tx.query(`DROP INDEX IF EXISTS ${quoted(name)}`),
  );
}

/**
 * Builds an index of a partitioned table, for which PostgreSQL refuses CONCURRENTLY. It first
 * creates the index of the table alone, which is not valid yet. Then it builds the index of each
 * partition, and attaches it. With the last partition, the index of the table becomes valid.
 */
async function buildOnPartitions(
  manager: EntityManager,
  log: Logger,
  { name, table, create, rest }: Index,
  isMissing: boolean,
): Promise<void> {
  const what = `Index ${name}`;
  if (isMissing) {
    await withShortLocks(manager, log, what, (tx) =>
      tx.query(`${create} INDEX ${quoted(name)} ON ONLY ${quoted(table)} ${rest}`),
    );
  }
  const partitions = await sql<{ partition: string }>(manager)`
    SELECT c.relname AS partition
    FROM pg_inherits p JOIN pg_class c ON c.oid = p.inhrelid
    WHERE p.inhparent = to_regclass(${quoted(table)})
      AND NOT EXISTS (SELECT FROM pg_inherits a JOIN pg_index i ON i.indexrelid = a.inhrelid
                      WHERE a.inhparent = to_regclass(${quoted(name)}) AND i.indrelid = c.oid)
    ORDER BY c.relname`;
  for (const { partition } of partitions) {
    const part = nameOfPart(partition, name);
    await buildIndex(manager, log, { name: part, table: partition, create, rest });
    await withShortLocks(manager, log, what, (tx) =>
      tx.query(`ALTER INDEX ${quoted(name)} ATTACH PARTITION ${quoted(part)}`),
    );
  }
}

/**
 * Returns the name for the index of one partition. Each attempt gives the same name, so that a
 * repeated build finds an index that already exists.
 */
function nameOfPart(partition: string, index: string): string {
  const name = `${partition}_${index}`;
  if (Buffer.byteLength(name) <= NAME_LENGTH) return name;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return `${index.slice(0, NAME_LENGTH - 9)}_${digest}`;
}
