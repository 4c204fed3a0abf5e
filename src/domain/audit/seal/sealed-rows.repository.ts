import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { fragment, sql, SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { FIRST_PLACE, type FeedPlace } from '../feed/audit-feed.repository.js';
import { DEPLOYMENT } from './checkpoint.js';
import { KIND_BY_CLASS } from './leaf-entry.js';

/**
 * An SQL join that makes a row `r` with the columns of an event `e`. The order of the columns is
 * fixed, because another order would change the sealed text.
 */
const COLUMNS = new SqlFragment(
  [
    `CROSS JOIN LATERAL (SELECT e.id, e.type, e.class, e.actor_id, e.subject_id, e.org_id, e.request_id, e.ip,
      e.user_agent, e.details, e.created_at AT TIME ZONE 'UTC' AS created_at_utc, e.actor_email, e.subject_email,
      e.client_name, e.epoch, e.xid) r`,
  ],
  [],
);

/** The SQL of the text of an event that is sealed: JSON of all columns, as PostgreSQL prints it. */
const TEXT = 'row_to_json(r)::text';
const TEXT_OF_ROW = new SqlFragment([TEXT], []);

/**
 * The SQL of the leaf entry of an event: class, id, time and the hash of its text, as in {@link
 * KIND_BY_CLASS} and `leaf-entry.ts`.
 */
const ENTRY = new SqlFragment(
  [
    `${KIND_BY_CLASS} || uuid_send(e.id) || timestamptz_send(e.created_at) || sha256(convert_to(${TEXT}, 'UTF8'))`,
  ],
  [],
);

/**
 * The leaf entries of events in the order of the feed, one after another, and the position of the
 * last event.
 */
export interface RowEntries {
  readonly entries: Buffer;
  readonly last: FeedPlace;
}

/** An event of the log as the text that is sealed, with its id. */
export interface RowText {
  readonly id: string;
  readonly text: string;
}

/** Returns the organization of a Merkle tree; null for the tree of events without one. */
const orgOf = (tree: string): string | null => (tree === DEPLOYMENT ? null : tree);

/**
 * Returns the SQL of the events of a tree after a position in the feed, in the order of the feed.
 */
function feedOf(tree: string, { epoch, xid, id }: FeedPlace, limit: number): SqlFragment {
  const place = fragment`${epoch}::bigint, ${xid}::xid8, ${id}::uuid, ${limit}::int`;
  const org = orgOf(tree);
  return org === null
    ? fragment`audit_feed_of_deployment(${place})`
    : fragment`audit_feed(${org}::uuid, ${place})`;
}

/**
 * Reads the leaf entries of at most `limit` events of a tree after a position; undefined if there
 * are none.
 */
export async function readEntries(
  tx: EntityManager,
  tree: string,
  after: FeedPlace,
  limit: number,
): Promise<RowEntries | undefined> {
  // The aggregates take the rows in their order, so that the last element of each list is that of
  // the last row. To sort the rows again for the last one took as long as to make their entries.
  const [row] = await sql<{ entries: Buffer | null; epoch: string; xid: string; id: string }>(tx)`
    SELECT string_agg(s.entry, ''::bytea) AS entries, (array_agg(s.epoch))[count(*)]::text AS epoch,
      (array_agg(s.xid))[count(*)]::text AS xid, (array_agg(s.id))[count(*)]::text AS id
    FROM (SELECT e.epoch, e.xid, e.id, ${ENTRY} AS entry FROM ${feedOf(tree, after, limit)} e ${COLUMNS}
          WHERE ${CONFIRMED} ORDER BY e.epoch, e.xid, e.id) s`;
  if (!row?.entries) return undefined;
  return { entries: row.entries, last: { epoch: row.epoch, xid: row.xid, id: row.id } };
}

/**
 * Lists the events of a tree after one position of the feed and up to another, in the order of the
 * feed. It also lists events that were inserted after the sealing, so that no leaf is about them.
 */
export function listRowTexts(
  tx: EntityManager,
  tree: string,
  after: FeedPlace,
  { epoch, xid, id }: FeedPlace,
  limit: number,
): Promise<RowText[]> {
  return sql<RowText>(tx)`
    SELECT e.id, ${TEXT_OF_ROW} AS text
    FROM audit_rows_between(${orgOf(tree)}::uuid, ${after.epoch}::bigint, ${after.xid}::xid8, ${after.id}::uuid,
      ${epoch}::bigint, ${xid}::xid8, ${id}::uuid, ${limit}::int) e ${COLUMNS}
    WHERE ${CONFIRMED} ORDER BY e.epoch, e.xid, e.id`;
}

/**
 * Lists at most `limit` events of a tree that the feed never shows. `first`: their position is not
 * after the first position of the feed. `last`: their epoch is after the present one.
 */
export function listHiddenTexts(
  tx: EntityManager,
  tree: string,
  place: 'first' | 'last',
  limit: number,
): Promise<RowText[]> {
  const org = orgOf(tree);
  const ofTree = org === null ? fragment`e.org_id IS NULL` : fragment`e.org_id = ${org}::uuid`;
  const { epoch, xid, id } = FIRST_PLACE;
  const isHidden =
    place === 'first'
      ? fragment`(e.epoch, e.xid, e.id) <= (${epoch}::bigint, ${xid}::xid8, ${id}::uuid)`
      : fragment`e.epoch > (SELECT d.epoch FROM database_identity d)`;
  return sql<RowText>(tx)`
    SELECT e.id, ${TEXT_OF_ROW} AS text FROM (
      SELECT e.* FROM audit_events e WHERE ${ofTree} AND ${isHidden}
      ORDER BY e.epoch, e.xid, e.id LIMIT ${limit}::int) e ${COLUMNS}
    WHERE ${CONFIRMED} ORDER BY e.epoch, e.xid, e.id`;
}

/**
 * Returns those of the given ids for which the log has an event, even if the event has another
 * position or another organization.
 */
export async function findElsewhere(
  tx: EntityManager,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const rows = await sql<{ id: string }>(tx)`
    SELECT e.id FROM audit_events e WHERE e.id = ANY (${ids}::uuid[])`;
  return new Set(rows.map(({ id }) => id));
}

/** A page of organizations: those whose events must be sealed, and the last one looked at. */
export interface UnsealedPage {
  readonly orgs: readonly string[];
  /** The organization after which the next page begins; undefined if this is the last page. */
  readonly next: string | undefined;
}

/**
 * Looks through at most `most` organizations after one, and lists those that have events after the
 * last event of their newest tree. If the epoch of the tree has ended, the last event that its last
 * checkpoint covers counts instead.
 */
export async function listUnsealed(
  tx: EntityManager,
  after: string,
  most: number,
): Promise<UnsealedPage> {
  const rows = await sql<{ org_id: string; is_unsealed: boolean }>(tx)`
    SELECT o.org_id, EXISTS (
        SELECT FROM audit_feed(o.org_id, coalesce(l.epoch, ${FIRST_PLACE.epoch}::bigint),
          coalesce(l.xid, ${FIRST_PLACE.xid}::xid8), coalesce(l.id, ${FIRST_PLACE.id}::uuid), 1)) AS is_unsealed
    FROM audited_organizations_after(${after}::uuid, ${most}::int) o (org_id)
    LEFT JOIN LATERAL (
      SELECT CASE WHEN is_open THEN t.last_epoch ELSE t.signed_epoch END AS epoch,
        CASE WHEN is_open THEN t.last_xid ELSE t.signed_xid END AS xid,
        CASE WHEN is_open THEN t.last_id ELSE t.signed_id END AS id
      FROM audit_trees t, LATERAL (SELECT t.epoch = (SELECT d.epoch FROM database_identity d) AS is_open) s
      WHERE t.tree = o.org_id ORDER BY t.epoch DESC LIMIT 1) l ON true
    WHERE ${CONFIRMED} ORDER BY o.org_id`;
  return {
    orgs: rows.filter((row) => row.is_unsealed).map((row) => row.org_id),
    next: rows.length === most ? rows.at(-1)?.org_id : undefined,
  };
}
