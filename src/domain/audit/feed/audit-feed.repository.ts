import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { UNCONFIRMED } from '#platform/database/statements/faults.js';
import { fragment, sql, SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { COLUMNS, eventOf, type Row } from '../audit-events.repository.js';
import type { AuditRow } from '../audit-filter.js';

/**
 * A position in the feed, which is the order in which programs read the audit log. It is the epoch,
 * the id of the writing transaction (`xid`), and the id of the event.
 *
 * A new epoch begins when a failover or a restore may have lost events. The numbers are texts,
 * because JavaScript cannot represent large ones exactly.
 */
export interface FeedPlace {
  readonly epoch: string;
  readonly xid: string;
  readonly id: string;
}

/** An audit event with its position in the feed. */
export interface FeedRow extends AuditRow {
  readonly feedPlace: FeedPlace;
}

const NO_ID = '00000000-0000-0000-0000-000000000000';

/** The position before the first event of the feed. */
export const FIRST_PLACE: FeedPlace = { epoch: '0', xid: '0', id: NO_ID };

/**
 * The SQL condition that an event `e` may appear in the feed, because no later commit can put an
 * event before it. The condition holds if the id of its transaction is below the xmin of the
 * snapshot, which is the lowest id of an open transaction.
 *
 * Epochs before `xids_since` come from a restored dump. Their transactions ran in another
 * PostgreSQL cluster, so none of them is open.
 */
const IS_SETTLED = fragment`e.epoch <= (SELECT d.epoch FROM database_identity d)
  AND (e.epoch < (SELECT d.xids_since FROM database_identity d) OR e.xid < (SELECT pg_snapshot_xmin(pg_current_snapshot())))`;

/**
 * The SQL condition that an event `e` is not in the feed yet. An older transaction may still be
 * open and commit an event before it. An event of a later epoch was not written by the service, and
 * the feed never shows it. It counts as waiting, so that the warning of a long delay makes it
 * known.
 */
const IS_WAITING = fragment`(e.epoch, e.xid) >= (
  (SELECT d.epoch FROM database_identity d), pg_snapshot_xmin(pg_current_snapshot()))`;

/**
 * Lists the events of an organization after a position, in the order of the feed. The SQL function
 * `audit_feed` returns an event only after no open transaction can add an event before it, so that
 * a reader misses none.
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

/**
 * Returns the position of the last event of an organization in the feed, or the one before the
 * first event if there is none.
 */
export async function endOfFeed(tx: EntityManager, orgId: string): Promise<FeedPlace> {
  const [last] = await sql<FeedPlace>(tx)`
    SELECT e.epoch::text AS epoch, e.xid::text AS xid, e.id FROM audit_events e
    WHERE ${CONFIRMED} AND e.org_id = ${orgId}::uuid AND ${IS_SETTLED}
    ORDER BY e.epoch DESC, e.xid DESC, e.id DESC LIMIT 1`;
  return last ?? FIRST_PLACE;
}

/**
 * Returns the position from which a reader must go on if this database never had the position of
 * the reader. This database may lack the position after a failover lost events, or after a backup
 * was restored. Returns undefined if the reader may go on from its own position.
 *
 * A prepared transaction can commit an event of an epoch that has ended, after the recorded last
 * position of the epoch. So a position after the recorded one is also accepted if the organization
 * has the event at this position.
 *
 * A reader of an epoch that this database does not know goes on after the last known epoch before
 * it.
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
 * The error if other transactions that may write audit events stay open for too long. Its code says
 * that the server is not confirmed, so that the caller tries again.
 */
export class OpenAuditWriters extends Error {
  readonly code = UNCONFIRMED;
}

/**
 * Waits at most 20 seconds until no other transaction that writes events is open, and then locks
 * the audit log until the end of the transaction. The caller ends the epoch of the feed, and an
 * event that an older transaction commits later would have the ended epoch. A reader that has read
 * events of the next epoch would miss it.
 *
 * @throws OpenAuditWriters if the wait was too long. A prepared transaction (`PREPARE TRANSACTION`)
 *   can keep its lock until an operator ends it
 */
export async function holdAuditWriters(tx: EntityManager): Promise<void> {
  const [row] = await sql<{ is_held: boolean }>(tx)`SELECT hold_audit_writers() AS is_held`;
  if (row?.is_held === true) return;
  throw new OpenAuditWriters(
    'a transaction holds the audit log for more than 20 seconds: pg_locks, pg_stat_activity and pg_prepared_xacts show it',
  );
}

/**
 * The most organizations at which one statement looks for events that wait. With the partitions of
 * three months it takes about 0.2 ms for each, so that one statement for 50,000 exceeds its time
 * limit. A test lowers the number.
 */
export const DELAY_PAGES = { organizations: 500 };

/** The delay of the feed in a page of organizations. */
export interface DelayPage {
  /**
   * The age, in milliseconds, of the oldest event that the feed does not show yet, of these
   * organizations or of none; 0 if there is no such event.
   */
  readonly delay: number;
  /** The organization after which the next page begins; undefined if this is the last page. */
  readonly next: string | undefined;
}

/**
 * Looks at a page of organizations, and at the events without one.
 *
 * @param after the organization after which the page begins; by default the first page
 */
export async function feedDelayIn(tx: EntityManager, after: string = NO_ID): Promise<DelayPage> {
  const most = DELAY_PAGES.organizations;
  const [row] = await sql<{ age: number; next: string | null }>(tx)`
    WITH page AS MATERIALIZED (
      SELECT o.org_id FROM audited_organizations_after(${after}::uuid, ${most}::int) o (org_id)
    ), waiting AS (
      (SELECT e.created_at FROM audit_events e
       WHERE e.org_id IS NULL AND ${IS_WAITING} ORDER BY e.epoch, e.xid, e.id LIMIT 1)
      UNION ALL
      (SELECT p.created_at FROM page o CROSS JOIN LATERAL (
         SELECT e.created_at FROM audit_events e
         WHERE e.org_id = o.org_id AND ${IS_WAITING} ORDER BY e.epoch, e.xid, e.id LIMIT 1) p)
    )
    SELECT (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(w.created_at)) * 1000, 0)::float8 FROM waiting w) AS age,
      (SELECT p.org_id FROM page p ORDER BY p.org_id OFFSET ${most - 1}::int LIMIT 1) AS next`;
  return { delay: Math.max(0, row?.age ?? 0), next: row?.next ?? undefined };
}

/**
 * Returns the age, in milliseconds, of the oldest event that the feed does not show yet; 0 if there
 * is none. It looks at all organizations, page after page.
 */
export async function feedDelay(tx: EntityManager): Promise<number> {
  let longest = 0;
  for (let after: string | undefined = NO_ID; after !== undefined;) {
    const page: DelayPage = await feedDelayIn(tx, after);
    longest = Math.max(longest, page.delay);
    after = page.next;
  }
  return longest;
}

/**
 * Returns the age, in milliseconds, of the oldest event of one organization that the feed does not
 * show yet; 0 if there is none.
 */
export async function feedDelayOf(tx: EntityManager, orgId: string): Promise<number> {
  const [row] = await sql<{ age: number }>(tx)`
    SELECT extract(epoch FROM clock_timestamp() - e.created_at)::float8 * 1000 AS age FROM audit_events e
    WHERE e.org_id = ${orgId}::uuid AND ${IS_WAITING} ORDER BY e.epoch, e.xid, e.id LIMIT 1`;
  return Math.max(0, row?.age ?? 0);
}
