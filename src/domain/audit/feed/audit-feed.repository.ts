import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { fragment, sql, SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { COLUMNS, eventOf, type Row } from '../audit-events.repository.js';
import type { AuditRow } from '../audit-filter.js';

/**
 * A place in the order in which programs read the log: the epoch, the transaction and the event.
 * The numbers are larger than a JavaScript number, so they are texts.
 */
export interface FeedPlace {
  readonly epoch: string;
  readonly xid: string;
  readonly id: string;
}

/** An event with its place in the feed. */
export interface FeedRow extends AuditRow {
  readonly feedPlace: FeedPlace;
}

const NO_ID = '00000000-0000-0000-0000-000000000000';

/** The place before the first event. */
export const FIRST_PLACE: FeedPlace = { epoch: '0', xid: '0', id: NO_ID };

/**
 * The condition that every event before an event `e` in the feed is visible, so that no event
 * appears before it later. No transaction below the xmin of the snapshot is open. The epochs of a
 * restored dump have the transactions of another cluster, and none of them is open.
 */
const IS_SETTLED = fragment`e.epoch <= (SELECT d.epoch FROM database_identity d)
  AND (e.epoch < (SELECT d.xids_since FROM database_identity d) OR e.xid < (SELECT pg_snapshot_xmin(pg_current_snapshot())))`;

/** The condition that an event is not in the feed yet. */
const IS_WAITING = fragment`e.epoch = (SELECT d.epoch FROM database_identity d)
  AND e.xid >= pg_snapshot_xmin(pg_current_snapshot())`;

/**
 * Lists the events of an organization after a place, in the order of the feed. Every event before
 * them is visible, so that no event appears before them later: no transaction below the xmin of the
 * snapshot is open. The epochs of a restored dump have the transactions of another cluster, and
 * none of them is open.
 */
export async function listFeed(
  tx: EntityManager,
  orgId: string,
  after: FeedPlace,
  limit: number,
): Promise<FeedRow[]> {
  const rows = await sql<Row & { readonly epoch: string; readonly xid: string }>(tx)`
    SELECT ${new SqlFragment([COLUMNS], [])}, e.epoch::text AS epoch, e.xid::text AS xid
    FROM audit_feed(${orgId}::uuid, ${after.epoch}::bigint, ${after.xid}::xid8, ${after.id}::uuid, ${limit}::int) e
    WHERE ${CONFIRMED} ORDER BY e.epoch, e.xid, e.id`;
  return rows.map((row) => {
    const { epoch, xid, id } = row;
    return { ...eventOf(row), feedPlace: { epoch, xid, id } };
  });
}

/** Returns the place of the last event of an organization in the feed. */
export async function endOfFeed(tx: EntityManager, orgId: string): Promise<FeedPlace> {
  const [last] = await sql<FeedPlace>(tx)`
    SELECT e.epoch::text AS epoch, e.xid::text AS xid, e.id FROM audit_events e
    WHERE ${CONFIRMED} AND e.org_id = ${orgId}::uuid AND ${IS_SETTLED}
    ORDER BY e.epoch DESC, e.xid DESC, e.id DESC LIMIT 1`;
  return last ?? FIRST_PLACE;
}

/**
 * Returns the place from which a reader goes on whose place this database never had, because events
 * were lost, or a copy of another time was restored. Undefined for a reader who may go on.
 *
 * A prepared transaction may commit an event of an epoch after the end of the epoch, beyond the
 * last place on record. So a reader goes on from an event of the organization that is there.
 *
 * A reader of an epoch that this database does not know has read all epochs before it.
 */
export async function restartOfFeed(
  tx: EntityManager,
  orgId: string,
  { epoch, xid, id }: FeedPlace,
): Promise<FeedPlace | undefined> {
  const [row] = await sql<{ is_beyond: boolean; epoch: string; xid: string; id: string }>(tx)`
    SELECT CASE
        WHEN ${epoch}::bigint = d.epoch THEN ${xid}::xid8 >= pg_snapshot_xmax(pg_current_snapshot())
        ELSE ended.epoch IS DISTINCT FROM ${epoch}::bigint
          OR (${xid}::xid8, ${id}::uuid) > (ended.last_xid, ended.last_id) AND NOT EXISTS (
            SELECT FROM audit_events e WHERE e.id = ${id}::uuid AND e.org_id = ${orgId}::uuid
              AND (e.epoch, e.xid) = (${epoch}::bigint, ${xid}::xid8))
      END AS is_beyond,
      coalesce(ended.epoch, 0)::text AS epoch, coalesce(ended.last_xid, '0')::text AS xid,
      coalesce(ended.last_id, ${NO_ID}::uuid)::text AS id
    FROM database_identity d
    LEFT JOIN LATERAL (
      SELECT * FROM audit_epochs a
      WHERE a.epoch < ${epoch}::bigint OR (a.epoch = ${epoch}::bigint AND a.epoch <> d.epoch)
      ORDER BY a.epoch DESC LIMIT 1) ended ON true
    WHERE ${CONFIRMED}`;
  return row?.is_beyond === true ? { epoch: row.epoch, xid: row.xid, id: row.id } : undefined;
}

/**
 * Waits for the transactions that write events, before the epoch ends on a server that they may use
 * already. The table stays locked until the end of the transaction.
 */
export async function holdAuditWriters(tx: EntityManager): Promise<void> {
  await sql(tx)`SELECT hold_audit_writers()`;
}

/** Reads how long the oldest event has waited that the feed does not show yet, in milliseconds. */
export async function feedDelay(tx: EntityManager): Promise<number> {
  const [row] = await sql<{ age: number }>(tx)`
    SELECT coalesce(extract(epoch FROM clock_timestamp() - min(w.created_at)) * 1000, 0)::float8 AS age
    FROM (
      (SELECT e.created_at FROM audit_events e
       WHERE e.org_id IS NULL AND ${IS_WAITING} ORDER BY e.epoch, e.xid, e.id LIMIT 1)
      UNION ALL
      (SELECT p.created_at FROM audited_organizations() o (org_id) CROSS JOIN LATERAL (
         SELECT e.created_at FROM audit_events e
         WHERE e.org_id = o.org_id AND ${IS_WAITING} ORDER BY e.epoch, e.xid, e.id LIMIT 1) p)
    ) w`;
  return Math.max(0, row?.age ?? 0);
}

/** Reads the same delay for the events of one organization. */
export async function feedDelayOf(tx: EntityManager, orgId: string): Promise<number> {
  const [row] = await sql<{ age: number }>(tx)`
    SELECT extract(epoch FROM clock_timestamp() - e.created_at)::float8 * 1000 AS age FROM audit_events e
    WHERE e.org_id = ${orgId}::uuid AND ${IS_WAITING} ORDER BY e.epoch, e.xid, e.id LIMIT 1`;
  return Math.max(0, row?.age ?? 0);
}
