import type { Logger } from '@nestjs/common';
import { systemClock } from '#platform/clock/clock.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Batches, Migration } from './migration-files.js';
import { withShortLocks } from './short-locks.js';

/**
 * The number of rows in one batch of a migration. The COMMIT of a request waits until PostgreSQL
 * has written its whole write-ahead log to disk, including the rows of other transactions. So that
 * no request waits long, a batch is small, and a pause as long as the batch follows it.
 */
const ROWS = 250;

/** The longest pause between two batches, in milliseconds. */
const LONGEST_PAUSE = 1_000;

/** The interval of log lines about the progress, in milliseconds. */
const LOG_EVERY = 10_000;

/**
 * Runs the statements of a migration file once for each batch of 250 rows of its table, each time
 * in a transaction of its own. The statements find the first and the last key of the batch in the
 * settings `migration.first` and `migration.last`, as text. The statements must not change a row
 * again that they have changed before, because a killed migration begins again with the first
 * batch.
 *
 * @param behind the key after which the batches begin; by default they begin with the first row
 */
export async function runInBatches(
  manager: EntityManager,
  log: Logger,
  { name, text }: Pick<Migration, 'name' | 'text'>,
  batches: Batches,
  behind?: string,
): Promise<void> {
  let rows = 0;
  let logAt = systemClock.monotonic() + LOG_EVERY;
  let keys = await nextKeys(manager, batches, behind);
  while (keys.length > 0) {
    const bounds = [keys[0], keys.at(-1)];
    const begun = systemClock.monotonic();
    await withShortLocks(manager, log, `Migration ${name}`, async (tx) => {
      await tx.query(
        `SELECT set_config('migration.first', $1, true), set_config('migration.last', $2, true)`,
        bounds,
      );
      await tx.query(text);
    });
    rows += keys.length;
    if (systemClock.monotonic() >= logAt) {
      log.log(`Migration ${name}: ${rows} rows of ${batches.table} so far`);
      logAt = systemClock.monotonic() + LOG_EVERY;
    }
    keys = await nextKeys(manager, batches, bounds[1]);
    if (keys.length > 0) {
      await systemClock.sleep(Math.min(systemClock.monotonic() - begun, LONGEST_PAUSE));
    }
  }
}

/**
 * Returns the first and the last key of the next batch, as text. The batch has the rows after the
 * key `behind`, or the first rows of the table if `behind` is undefined.
 */
async function nextKeys(
  manager: EntityManager,
  { table, key, where }: Batches,
  behind?: string,
): Promise<string[]> {
  const conditions = [where, behind === undefined ? '' : `${key} > $1`].filter((one) => one !== '');
  const rows = await manager.query<{ key: string }[]>(
    `SELECT ${key}::text AS key FROM ${table}
     ${conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''} ORDER BY ${table}.${key} LIMIT ${ROWS}`,
    behind === undefined ? [] : [behind],
  );
  return rows.map((row) => row.key);
}
