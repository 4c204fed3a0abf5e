import { createHash } from 'node:crypto';
import type { Logger } from '@nestjs/common';
import { systemClock } from '#platform/clock/clock.js';
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

/** The milliseconds after which a lock on a table counts as long. */
const LONG_LOCK = 500;

/** The milliseconds between two looks for long locks. */
const LOOK_AGAIN_AFTER = 1_000;

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
 * and locks the table and all its partitions together. So this function waits until no transaction
 * keeps one of them for long.
 */
async function dropIndex(manager: EntityManager, log: Logger, name: string): Promise<void> {
  const [found] = await sql<{ is_partitioned: boolean }>(manager)`
    SELECT relkind = 'I' AS is_partitioned FROM pg_class WHERE oid = to_regclass(${quoted(name)})`;
  if (!found) return;
  if (!found.is_partitioned) {
    await manager.query(`DROP INDEX CONCURRENTLY IF EXISTS ${quoted(name)}`);
    return;
  }
  const what = `The end of index ${name}`;
  for (let isDropped = false; !isDropped;) {
    await untilNoLongLocks(manager, log, name, what);
    const attempt = await withShortLocks(
      manager,
      log,
      what,
      (tx) => tx.query(`DROP INDEX IF EXISTS ${quoted(name)}`).then(() => true),
      1,
    );
    isDropped = attempt === true;
  }
}

/**
 * Waits until no other transaction has a lock on the table of a partitioned index, or on one of its
 * partitions, for longer than {@link LONG_LOCK}. It asks for no lock itself, because every other
 * statement on the table would then wait behind it.
 */
async function untilNoLongLocks(
  manager: EntityManager,
  log: Logger,
  name: string,
  what: string,
): Promise<void> {
  const holders = () => sql<{ id: string }>(manager)`
    SELECT DISTINCT l.virtualtransaction AS id
    FROM pg_index i CROSS JOIN LATERAL pg_partition_tree(i.indrelid) p JOIN pg_locks l ON l.relation = p.relid
    WHERE i.indexrelid = to_regclass(${quoted(name)}) AND l.pid IS DISTINCT FROM pg_backend_pid() AND l.granted
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())`;
  for (let looks = 1; ; looks += 1) {
    const earlier = new Set((await holders()).map(({ id }) => id));
    await systemClock.sleep(LONG_LOCK);
    const later = await holders();
    if (!later.some(({ id }) => earlier.has(id))) return;
    if (looks === 1) {
      log.log(
        `${what} waits for the end of a long transaction, such as a backup, an archive or a vacuum`,
      );
    }
    await systemClock.sleep(LOOK_AGAIN_AFTER);
  }
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
