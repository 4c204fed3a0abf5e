import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';

/** The days for which the numbers of sent and failed notices are kept and shown. */
export const COUNTED_DAYS = 30;

/**
 * Returns the SQL that adds finished notices to the daily statistics of their clients, for use as a
 * CTE (a query after WITH).
 *
 * @param settled the name of a CTE that has one row for each finished notice, with `client_id` and
 *   `self_registered`
 */
export function countedNotice(
  kind: string,
  outcome: 'sent' | 'failed',
  settled: SqlFragment,
): SqlFragment {
  const [sent, failed] = outcome === 'sent' ? [1, 0] : [0, 1];
  return fragment`
    INSERT INTO notice_counts AS c (client_id, kind, self_registered, sent, failed)
    SELECT s.client_id, ${kind}, s.self_registered, ${sent}::bigint, ${failed}::bigint FROM ${settled} s
    ON CONFLICT (client_id, kind, day) DO UPDATE SET sent = c.sent + excluded.sent, failed = c.failed + excluded.failed`;
}

/**
 * Returns the SQL condition that a client accepted a notice of a kind in the last
 * {@link COUNTED_DAYS} days. It names no date, because older counts are deleted.
 */
export function tookNotice(kind: string | SqlFragment, clientId: SqlFragment): SqlFragment {
  return fragment`EXISTS (
    SELECT FROM notice_counts c WHERE c.client_id = ${clientId} AND c.kind = ${kind} AND c.sent > 0)`;
}
