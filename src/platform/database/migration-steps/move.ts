import type { Logger } from '@nestjs/common';
import { systemClock } from '#platform/clock/clock.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { runInBatches } from './batches.js';
import type { Migration, Move } from './migration-files.js';
import { withShortLocks } from './short-locks.js';

/**
 * The parts of a migration file that moves the rows of a table into a new one. Each part is below a
 * line `-- name`. Their order is:
 *
 * - `mirror` makes triggers, so that each transaction writes its rows into both tables.
 * - `batch` copies the rows of one batch that the new table lacks.
 * - `compare` returns `same`: true if both tables have the same rows after the key
 *   `migration.after`, up to the key `migration.last`.
 * - `exchange` gives the new table the name of the former one, in one transaction.
 * - `end` drops the former table.
 */
const PARTS = ['mirror', 'batch', 'compare', 'exchange', 'end'] as const;

type Parts = Readonly<Record<(typeof PARTS)[number], string>>;

/** The lowest and the highest key of a table whose key is a `uuid`. */
const LOWEST = '00000000-0000-0000-0000-000000000000';
const HIGHEST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The number of rows that one statement compares. */
const COMPARED = 5_000;

/** The milliseconds between two checks whether the earlier transactions have ended. */
const POLL = 200;

/** The number of polls after which the log says why the migration waits. */
const LOG_EVERY = 50;

/**
 * Moves the rows of a table into a new one while the service uses the table, and exchanges the two
 * tables. If the process is killed, the next process goes on, because each part can be repeated.
 *
 * Every row is in the new table once. If a row was written after the triggers were made, the
 * triggers have written it to both tables. Every other row was committed before the triggers were
 * made, so the copying transactions see it.
 */
export async function runMove(
  manager: EntityManager,
  log: Logger,
  { name, text }: Migration,
  move: Move,
): Promise<void> {
  const parts = partsOf(name, text);
  const run = (part: string) =>
    withShortLocks(manager, log, `Migration ${name}`, (tx) => tx.query(part));
  if (await exists(manager, move.into)) {
    await run(parts.mirror);
    await copy(manager, log, { name, text: parts.batch }, move);
    const copiedAt = await databaseTime(manager);
    await manager.query(`ANALYZE ${move.into}`);
    await compare(manager, parts.compare, move);
    await untilOthersEnded(manager, log, name, copiedAt);
    await run(parts.exchange);
  }
  await run(parts.end);
}

/**
 * Splits the text at the lines that name its parts.
 *
 * @throws Error if a part is missing or repeated, or if the order differs
 */
function partsOf(name: string, text: string): Parts {
  const [, ...pieces] = text.split(/^-- (mirror|batch|compare|exchange|end)$/m);
  const names = pieces.filter((_, index) => index % 2 === 0);
  if (names.join() !== PARTS.join())
    throw new Error(`Migration ${name} has the parts ${names.join(', ')}`);
  return Object.fromEntries(
    names.map((part, index) => [part, pieces[2 * index + 1] ?? '']),
  ) as Parts;
}

async function exists(manager: EntityManager, table: string): Promise<boolean> {
  const [row] = await sql<{ is_there: boolean }>(manager)`
    SELECT to_regclass(${table}) IS NOT NULL AS is_there`;
  return row?.is_there === true;
}

/**
 * Copies the rows up to the largest key at this time. Rows with larger keys are written later, when
 * the triggers already write each row to both tables. So the copying ends even if requests keep
 * adding rows.
 */
async function copy(
  manager: EntityManager,
  log: Logger,
  { name, text }: { readonly name: string; readonly text: string },
  { from, key, notes }: Move,
): Promise<void> {
  const [noted] = await manager.query<{ key: string | null }[]>(`SELECT key::text FROM ${notes}`);
  const [end] = await manager.query<{ key: string | null }[]>(
    `SELECT (SELECT ${key}::text FROM ${from} ORDER BY ${key} DESC LIMIT 1) AS key`,
  );
  const note = `UPDATE ${notes} SET key = current_setting('migration.last')::uuid`;
  const batches = { table: from, key, where: `${key} <= '${end?.key ?? LOWEST}'` };
  await runInBatches(
    manager,
    log,
    { name, text: `${text}; ${note}` },
    batches,
    noted?.key ?? undefined,
  );
}

/**
 * Compares the rows of both tables, a range of keys in each statement.
 * @throws Error if the tables differ. The next attempt then begins to copy at the first row again.
 */
async function compare(
  manager: EntityManager,
  text: string,
  { from, key, notes }: Move,
): Promise<void> {
  for (let after = LOWEST; after !== HIGHEST;) {
    const [end] = await manager.query<{ key: string }[]>(
      `SELECT ${key}::text AS key FROM ${from} WHERE ${key} > $1 ORDER BY ${key} OFFSET ${COMPARED - 1} LIMIT 1`,
      [after],
    );
    const last = end?.key ?? HIGHEST;
    const isSame = await manager.transaction(async (tx) => {
      await tx.query(
        `SELECT set_config('migration.after', $1, true), set_config('migration.last', $2, true)`,
        [after, last],
      );
      const [row] = await tx.query<{ same: boolean }[]>(text);
      return row?.same === true;
    });
    if (!isSame) {
      await manager.query(`UPDATE ${notes} SET key = NULL`);
      throw new Error(`the copy of ${from} differs between the keys ${after} and ${last}`);
    }
    after = last;
  }
}

async function databaseTime(manager: EntityManager): Promise<string> {
  const [row] = await sql<{ at: string }>(manager)`SELECT clock_timestamp()::text AS at`;
  if (!row) throw new Error('SELECT returned no row');
  return row.at;
}

/**
 * Waits for the transactions that began before the last row was copied. The snapshot of a
 * transaction that began earlier may lack the row in the new table. After the exchange the
 * transaction would read the new table, and miss the row.
 */
async function untilOthersEnded(
  manager: EntityManager,
  log: Logger,
  name: string,
  copiedAt: string,
): Promise<void> {
  for (let polls = 1; ; polls += 1) {
    const [row] = await sql<{ n: number }>(manager)`
      SELECT count(*)::int AS n FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend' AND backend_xmin IS NOT NULL AND xact_start <= ${copiedAt}::timestamptz`;
    if (row?.n === 0) return;
    if (polls % LOG_EVERY === 0) {
      log.warn(
        `Migration ${name} waits for ${row?.n} transactions that began before its rows were copied. ` +
          `End the long transactions that pg_stat_activity shows, such as a backup or an open psql.`,
      );
    }
    await systemClock.sleep(POLL);
  }
}
