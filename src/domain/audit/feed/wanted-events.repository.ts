import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { fragment, sql, SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { COLUMNS, eventOf, type Row } from '../audit-events.repository.js';
import type { FeedPlace, FeedRow } from './audit-feed.repository.js';

/** The events of the feed that a reader wants: those of some types, and the tests of the reader. */
export interface WantedEvents {
  readonly types: readonly string[];
  /** The `receiver_id` in the details of events that the reader gets whatever their type. */
  readonly receiverId: string;
}

/** A part of the feed that a reader went through. */
export interface PassedEvents {
  /** The events that the reader wants, in the order of the feed. */
  readonly events: readonly FeedRow[];
  /** The place after which the reader goes on; undefined if no event is after the place. */
  readonly end: FeedPlace | undefined;
  /** True if the part has as many events as were asked for, so that there may be more. */
  readonly isFull: boolean;
}

interface FoundRow extends Row {
  readonly epoch: string;
  readonly xid: string;
  readonly matches: boolean;
  readonly n: string;
}

/** The columns of an event with its place. */
const PLACED = fragment`${new SqlFragment([COLUMNS], [])}, e.epoch::text AS epoch, e.xid::text AS xid`;

/**
 * Goes through the next events of an organization in the order of the feed, and returns those that
 * a reader wants. The others are not read from the database, except for the last one.
 *
 * @param most the largest number of events that the reader goes through
 */
export async function passEvents(
  tx: EntityManager,
  orgId: string,
  after: FeedPlace,
  most: number,
  wanted: WantedEvents | undefined,
): Promise<PassedEvents> {
  const matches = wanted
    ? fragment`(e.type = ANY (${wanted.types}::text[])
        OR e.type = 'event_receiver_tested' AND e.details ->> 'receiver_id' = ${wanted.receiverId}::text)`
    : fragment`true`;
  const rows = await sql<FoundRow>(tx)`
    SELECT * FROM (
      SELECT ${PLACED}, ${matches} AS matches, row_number() OVER places AS n, lead(e.id) OVER places IS NULL AS is_last
      FROM audit_feed(${orgId}::uuid, ${after.epoch}::bigint, ${after.xid}::xid8, ${after.id}::uuid, ${most}::int) e
      WHERE ${CONFIRMED} WINDOW places AS (ORDER BY e.epoch, e.xid, e.id)
    ) e WHERE e.matches OR e.is_last ORDER BY e.n`;
  const last = rows.at(-1);
  return {
    events: rows.filter((row) => row.matches).map(placed),
    end: last && placeOf(last),
    isFull: Number(last?.n ?? 0) === most,
  };
}

/** Finds an event of an organization with its place in the feed. */
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
