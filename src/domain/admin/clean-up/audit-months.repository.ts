import type { Logger } from '@nestjs/common';
import { withShortLocks } from '#platform/database/migration-steps/short-locks.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Retention } from './expired-rows.repository.js';

/**
 * The number of attempts of one clean-up to lock the tables of a month. If all attempts fail, the
 * next clean-up tries again.
 */
const ATTEMPTS = 10;

/**
 * Drops each monthly partition of the audit log in which every event is older than the days for
 * which its class is kept. Events of the class `admin` are kept forever, and have no monthly
 * partitions.
 *
 * @returns the number of dropped partitions
 */
export async function dropPastMonths(
  tx: EntityManager,
  log: Logger,
  retention: Retention,
  isStopping: () => boolean,
): Promise<number> {
  if (!(await hasMonths(tx))) return 0;
  const months = await sql<{ class: keyof Retention; month: string }>(tx)`
    SELECT m.class, m.month FROM audit_months() m
    WHERE m.ends < now() - make_interval(days => CASE m.class WHEN 'auth' THEN ${retention.auth}::int ELSE ${retention.oauth}::int END)
    ORDER BY m.month, m.class`;
  let dropped = 0;
  for (const { class: ofClass, month } of months) {
    if (isStopping()) break;
    const days = retention[ofClass];
    const isDropped = await withShortLocks(
      tx,
      log,
      `The drop of ${ofClass} ${month}`,
      async (each) => {
        const [row] = await sql<{ dropped: boolean }>(each)`
        SELECT drop_audit_month(${ofClass}, ${month}, ${days}) AS dropped`;
        return row?.dropped === true;
      },
      ATTEMPTS,
    );
    if (isDropped === true) dropped += 1;
  }
  return dropped;
}

/**
 * Creates the missing monthly partitions of the audit log, for this month, the next one, and the
 * months of rows in the default partition. If the statement cannot get its locks, no partition is
 * made, and new rows go into the default partition until a later run.
 */
export async function makeMonths(
  tx: EntityManager,
  log: Logger,
  isStopping: () => boolean,
): Promise<void> {
  if (!(await hasMonths(tx))) return;
  const missing = await sql<{ class: string; month: string }>(tx)`
    SELECT m.class, m.month::text AS month FROM missing_audit_months() m`;
  for (const { class: ofClass, month } of missing) {
    if (isStopping()) return;
    await withShortLocks(
      tx,
      log,
      `The partition of ${ofClass} ${month}`,
      (each) => sql(each)`SELECT make_audit_month(${ofClass}, ${month}::timestamptz)`,
      ATTEMPTS,
    );
  }
}

/** Returns true if the rows of the audit log have been moved into partitions. */
async function hasMonths(tx: EntityManager): Promise<boolean> {
  const [row] = await sql<{ is_partitioned: boolean }>(tx)`
    SELECT c.relkind = 'p' AS is_partitioned FROM pg_class c WHERE c.oid = to_regclass('audit_events')`;
  return row?.is_partitioned === true;
}
