import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { fragment, sql, SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { AuditType } from '../audit-event.js';
import { COLUMNS, eventOf, type Row } from '../audit-events.repository.js';
import type { FeedPlace, FeedRow } from './audit-feed.repository.js';

/**
 * The types of events that every event receiver gets, even if it does not select them. So the
 * people who read the events of a receiver notice each change of a receiver by an admin.
 */
export const ALWAYS_WANTED: readonly AuditType[] = [
  'event_receiver_created',
  'event_receiver_updated',
  'event_receiver_deleted',
  'event_receiver_secret_rotated',
];

/**
 * The events of the feed that an event receiver wants: those of some types, and the test events
 * that are meant for it.
 */
export interface WantedEvents {
  /** The types that the receiver selects, in addition to {@link ALWAYS_WANTED}. */
  readonly types: readonly string[];
  /**
   * The id of the receiver. A test event with this `receiver_id` in its details is wanted, also if
   * its type is not.
   */
  readonly receiverId: string;
}

/** The result of {@link passEvents}: a part of the feed that a reader went through. */
export interface PassedEvents {
  /** The events that the reader wants, in the order of the feed. */
  readonly events: readonly FeedRow[];
  /** The position after which the reader goes on; undefined if the feed has no further event. */
  readonly end: FeedPlace | undefined;
  /**
   * True if the reader went through the largest number of events that one call allows, so that
   * there may be more.
   */
  readonly isFull: boolean;
}

interface FoundRow extends Row {
  readonly epoch: string;
  readonly xid: string;
  readonly matches: boolean;
  /** The number of wanted events up to this one. */
  readonly found: string;
  readonly n: string;
}

/** The SQL columns of an event `e` with its position in the feed. */
const PLACED = fragment`${new SqlFragment([COLUMNS], [])}, e.epoch::text AS epoch, e.xid::text AS xid`;

/**
 * Goes through the next events of an organization in the order of the feed, and returns those that
 * a reader wants. The database sends no other events, except for the last one that it went through,
 * whose position shows how far the reader came.
 *
 * @param most the largest number of events that the reader goes through
 * @param limit the largest number of events that are returned; if more are wanted, `end` is the
 *   position of the last returned one
 * @param wanted the wanted events; undefined for all
 */
export async function passEvents(
  tx: EntityManager,
  orgId: string,
  after: FeedPlace,
  { most, limit }: { readonly most: number; readonly limit: number },
  wanted: WantedEvents | undefined,
): Promise<PassedEvents> {
  const matches = wanted
    ? fragment`(e.type = ANY (${[...wanted.types, ...ALWAYS_WANTED]}::text[])
        OR e.type = 'event_receiver_tested' AND e.details ->> 'receiver_id' = ${wanted.receiverId}::text)`
    : fragment`true`;
  const rows = await sql<FoundRow>(tx)`
    SELECT * FROM (
      SELECT ${PLACED}, ${matches} AS matches, count(*) FILTER (WHERE ${matches}) OVER places AS found,
             row_number() OVER places AS n, lead(e.id) OVER places IS NULL AS is_last
      FROM audit_feed(${orgId}::uuid, ${after.epoch}::bigint, ${after.xid}::xid8, ${after.id}::uuid, ${most}::int) e
      WHERE ${CONFIRMED} WINDOW places AS (ORDER BY e.epoch, e.xid, e.id)
    ) e WHERE e.matches AND e.found <= ${limit}::int OR e.is_last ORDER BY e.n`;
  const last = rows.at(-1);
  const events = rows
    .filter(({ matches: isWanted }) => isWanted)
    .slice(0, limit)
    .map(placed);
  const isCut = Number(last?.found ?? 0) > limit;
  return {
    events,
    end: isCut ? events.at(-1)?.feedPlace : last && placeOf(last),
    isFull: Number(last?.n ?? 0) === most,
  };
}

/**
 * Finds an event of an organization with its position in the feed; undefined if the organization
 * does not have it.
 */
export async function findPlacedEvent(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<FeedRow | undefined> {
  const [row] = await sql<FoundRow>(tx)`
    SELECT ${PLACED} FROM audit_events e WHERE e.id = ${id} AND e.org_id = ${orgId} AND ${CONFIRMED}`;
  return row && placed(row);
}

function placed(row: FoundRow): FeedRow {
  return { ...eventOf(row), feedPlace: placeOf(row) };
}

function placeOf({ epoch, xid, id }: FoundRow): FeedPlace {
  return { epoch, xid, id };
}
