import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { COMMIT_WITHIN } from '../replicas.repository.js';

/**
 * Checks if a process of the service wrote a heartbeat around a commit of the operator's command. A
 * heartbeat is a time that each process writes into the database twice a second. `isSeen`: a
 * process wrote one after the commit, so that it has read the operator's audit events. `isRunning`:
 * a process wrote one at most 30 seconds before the commit, or later.
 *
 * @param committedAt the time that {@link commitTime} returned
 */
export async function findWitness(
  tx: EntityManager,
  committedAt: string,
): Promise<{ readonly isSeen: boolean; readonly isRunning: boolean }> {
  const [row] = await sql<{ is_seen: boolean; is_running: boolean }>(tx)`
    SELECT coalesce(max(seen_at) > ${committedAt}::timestamptz, false) AS is_seen,
      coalesce(max(seen_at) > ${committedAt}::timestamptz - interval '30 seconds', false) AS is_running
    FROM replicas`;
  return { isSeen: row?.is_seen === true, isRunning: row?.is_running === true };
}

/**
 * Returns the present time of the database. The caller has committed the given audit events, so the
 * time is after their commit. Returns undefined if the commit took so long that the heartbeats of
 * the service's processes may miss the events.
 */
export async function commitTime(
  tx: EntityManager,
  auditIds: readonly string[],
): Promise<string | undefined> {
  const [row] = await sql<{ at: string }>(tx)`
    SELECT clock_timestamp()::text AS at FROM audit_events WHERE id = ANY (${auditIds}::uuid[])
    HAVING min(created_at) > clock_timestamp() - make_interval(secs => ${COMMIT_WITHIN - 1}::float8)`;
  return row?.at;
}
