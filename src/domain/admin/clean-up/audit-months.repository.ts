import type { Logger } from '@nestjs/common';
import { withShortLocks } from '#platform/database/migration-steps/short-locks.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Retention } from './expired-rows.repository.js';

/** The attempts to get the locks of one month. After them the next clean-up tries again. */
const ATTEMPTS = 10;

/**
 * Drops the partitions of months whose events are all past the retention of their class. The class
 * `admin` has no months.
 *
 * @returns the number of dropped months
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
 * Makes the missing partitions: of this month and the next one, and of rows that had none. It is no
 * fault if a lock was not to be had, because the default partition takes the rows meanwhile.
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
