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
 * `moved`: the most events that move from the default partition into a new one. Meanwhile no other
 * statement can read or write the default partition. A test lowers the number, so that it has to
 * insert fewer events.
 */
export const MONTH_BOUNDS = { moved: 10_000 };

/** One run of the clean-up. */
export interface CleanUpRun {
  readonly log: Logger;
  readonly isStopping: () => boolean;
  /** The errors of this run. The work that does not depend on what failed is done all the same. */
  readonly faults: unknown[];
}

/**
 * Drops each monthly partition of the audit log in which every event is older than the days for
 * which its class is kept. Events of the class `admin` are kept forever, and have no monthly
 * partitions. A month that cannot be dropped, such as one on which a view depends, does not stop
 * the others.
 *
 * @returns the number of dropped partitions
 */
export async function dropPastMonths(
  tx: EntityManager,
  retention: Retention,
  { log, isStopping, faults }: CleanUpRun,
): Promise<number> {
  if (!(await hasMonths(tx))) return 0;
  const months = await sql<{ class: keyof Retention; month: string }>(tx)`
    SELECT m.class, m.month FROM audit_months() m
    WHERE m.ends < now() - make_interval(hours => 24 * CASE m.class WHEN 'auth' THEN ${retention.auth}::int ELSE ${retention.oauth}::int END)
    ORDER BY m.month, m.class`;
  let dropped = 0;
  for (const { class: ofClass, month } of months) {
    if (isStopping()) break;
    const days = retention[ofClass];
    const what = `The drop of ${ofClass} ${month}`;
    const drop = async (each: EntityManager) => {
      const [row] = await sql<{ dropped: boolean }>(each)`
        SELECT drop_audit_month(${ofClass}, ${month}, ${days}) AS dropped`;
      return row?.dropped === true;
    };
    try {
      if (await withShortLocks(tx, log, what, drop, ATTEMPTS)) dropped += 1;
    } catch (error) {
      faults.push(error);
    }
  }
  return dropped;
}

/**
 * Creates the missing monthly partitions of the audit log, for this month, the next one, and the
 * months of rows in the default partition. If the statement cannot get its locks, no partition is
 * made, and new rows go into the default partition until a later run. A month that cannot be made
 * does not stop the others. No partition is made for a month of which the default partition has too
 * many events, because requests would wait while they move. The retention deletes these events.
 */
export async function makeMonths(
  tx: EntityManager,
  { log, isStopping, faults }: CleanUpRun,
): Promise<void> {
  if (!(await hasMonths(tx))) return;
  const missing = await sql<{ class: string; month: string }>(tx)`
    SELECT m.class, m.month::text AS month FROM missing_audit_months() m`;
  for (const { class: ofClass, month } of missing) {
    if (isStopping()) return;
    const what = `The partition of ${ofClass} ${month}`;
    const make = (each: EntityManager) =>
      sql(each)`SELECT make_audit_month(${ofClass}, ${month}::timestamptz)`;
    try {
      if (await hasTooMany(tx, ofClass, month)) {
        log.warn(
          `${what} is not made: its events are too many to move, and stay in the default partition until their retention ends.`,
        );
      } else await withShortLocks(tx, log, what, make, ATTEMPTS);
    } catch (error) {
      faults.push(error);
    }
  }
}

/** Returns true if a month without a partition has more events than can be moved at once. */
async function hasTooMany(tx: EntityManager, ofClass: string, month: string): Promise<boolean> {
  const [row] = await sql<{ n: number }>(tx)`
    SELECT count(*)::int AS n FROM (
      SELECT FROM audit_events e
      WHERE e.class = ${ofClass} AND e.created_at >= ${month}::timestamptz
        AND e.created_at < (${month}::timestamptz AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC'
      LIMIT ${MONTH_BOUNDS.moved + 1}) e`;
  return (row?.n ?? 0) > MONTH_BOUNDS.moved;
}

/** Returns true if the rows of the audit log have been moved into partitions. */
async function hasMonths(tx: EntityManager): Promise<boolean> {
  const [row] = await sql<{ is_partitioned: boolean }>(tx)`
    SELECT c.relkind = 'p' AS is_partitioned FROM pg_class c WHERE c.oid = to_regclass('audit_events')`;
  return row?.is_partitioned === true;
}
