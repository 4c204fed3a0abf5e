import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { composedSql, sql } from '#platform/database/statements/sql.js';
import type { AuditFilter, AuditFound, AuditRange, AuditRow } from './audit-filter.js';
import {
  SEARCH_BOUNDS,
  networkStatement,
  searchStatement,
  timelineStatement,
} from './audit-search.repository.js';

/** A row of an audit event, with the columns that {@link COLUMNS} selects. */
export interface Row {
  id: string;
  type: string;
  class: string;
  actor_id: string | null;
  subject_id: string | null;
  actor_email: string | null;
  subject_email: string | null;
  client_name: string | null;
  request_id: string | null;
  ip: string | null;
  user_agent: string | null;
  details: Record<string, unknown>;
  created_at: Date;
  at: string;
}

/**
 * A row of a search. `matches` is false for an event that does not match the whole filter. `is_end`
 * is true for the last event that the search checked in one index range before it stopped there.
 */
interface SearchedRow extends Row {
  matches: boolean;
  is_end: boolean;
}

/** The number of events of a type in one section of a timeline. */
export interface TimelineCount {
  readonly type: string;
  readonly class: string;
  /** The number of the section, from 1. */
  readonly section: number;
  readonly events: number;
  /** The beginning of the first section. `hi` is the end of the last one. */
  readonly lo: Date;
  readonly hi: Date;
  /**
   * True if the search stopped before the first section, so that earlier events may be left out.
   */
  readonly isCut: boolean;
}

/** An audit event about the security keys of a user. */
export interface KeyEvent {
  readonly type:
    'enrollment' | 'enrollment_refused' | 'key_registered' | 'key_removed' | 'key_renamed';
  readonly at: Date;
  readonly ip: string | null;
  /** The AAGUID (model id) of the key; null if the event has none. */
  readonly aaguid: string | null;
  /** The name of a key that was added, renamed or removed. */
  readonly name: string | null;
  /** The name of a key before it was renamed. */
  readonly earlierName: string | null;
  /** The reason of a refusal. */
  readonly reason: string | null;
  readonly requestId: string | null;
}

/**
 * The SQL of the columns of an event `e`, as {@link Row} has them. `at` is the time to the
 * microsecond, which a JavaScript date cannot hold.
 */
export const COLUMNS = `e.id, e.type, e.class, e.actor_id, e.subject_id, e.actor_email, e.subject_email, e.client_name, e.request_id, host(e.ip) AS ip, e.user_agent, e.details,
  e.created_at, to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at`;

/**
 * Lists the matching events of an organization after a position, the newest first. If few events
 * match, the search stops after it has checked a fixed number of events, and `end` is the last one
 * that it checked.
 */
export async function listAuditEvents(
  tx: EntityManager,
  orgId: string,
  filter: AuditFilter,
  page: AuditRange,
): Promise<AuditFound> {
  const isRare = await isRareNetwork(tx, orgId, filter);
  const { text, values } = searchStatement(COLUMNS, orgId, filter, page, isRare);
  const all = await composedSql<SearchedRow>(tx, text, values);
  const firstEnd = all.findIndex((row) => row.is_end);
  const checked = firstEnd === -1 ? all : all.slice(0, firstEnd + 1);
  const found = new Map(checked.filter(({ matches }) => matches).map((row) => [row.id, row]));
  const rows = [...found.values()].slice(0, page.limit).map(eventOf);
  const end = all[firstEnd];
  const isFull = rows.length === page.limit;
  return { rows, end: end && !isFull ? { at: end.at, id: end.id } : undefined };
}

/** Returns one event of an organization; undefined if the organization does not have it. */
export async function findAuditEvent(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<AuditRow | undefined> {
  const text = `SELECT ${COLUMNS} FROM audit_events e WHERE e.id = $2 AND e.org_id = $1`;
  const [row] = await composedSql<Row>(tx, text, [orgId, id]);
  return row && eventOf(row);
}

/**
 * Counts the matching events of an organization by type and by section of the timeline. It reads
 * about `size.most` events, the newest first, and divides their period into `size.sections` equal
 * sections.
 */
export async function countTimeline(
  tx: EntityManager,
  orgId: string,
  filter: AuditFilter,
  size: { readonly sections: number; readonly most: number; readonly now: Date },
): Promise<TimelineCount[]> {
  const isRare = await isRareNetwork(tx, orgId, filter);
  const { text, values } = timelineStatement(orgId, filter, size, isRare);
  return composedSql<TimelineCount>(tx, text, values);
}

/**
 * Lists the latest events of the keys of a user, the newest first. An event from before the account
 * existed, such as a refused key, is found by the user's e-mail address. SCIM may give a user any
 * address, so such an event must be of the user's organization. An event without an organization
 * must have an address in a domain that the user's organization owns. A user without an
 * organization has the address that the identity provider states.
 */
export function listKeyEvents(
  tx: EntityManager,
  user: { readonly id: string; readonly orgId: string | null; readonly email: string | null },
  limit: number,
): Promise<KeyEvent[]> {
  return sql<KeyEvent>(tx)`
    SELECT type, created_at AS at, host(ip) AS ip, details ->> 'aaguid' AS aaguid,
           details ->> 'name' AS name, details ->> 'earlier_name' AS "earlierName", details ->> 'reason' AS reason,
           request_id AS "requestId"
    FROM (
      (SELECT * FROM audit_events
       WHERE class = 'auth' AND subject_id = ${user.id} AND type IN ('enrollment', 'enrollment_refused', 'key_registered', 'key_removed', 'key_renamed')
       ORDER BY created_at DESC, id DESC LIMIT ${limit})
      UNION ALL
      (SELECT * FROM audit_events
       WHERE class = 'auth' AND type = 'enrollment_refused' AND subject_id IS NULL AND details ->> 'email' = ${user.email}
         AND (org_id IS NOT DISTINCT FROM ${user.orgId}::uuid OR org_id IS NULL AND is_own_address(${user.orgId}::uuid, ${user.email}::text))
       ORDER BY created_at DESC, id DESC LIMIT ${limit})
    ) events
    ORDER BY created_at DESC, id DESC LIMIT ${limit}`;
}

/**
 * Returns true if a filter names an IP network of several addresses, with so few events that all of
 * them can be read and sorted. A search can then begin with them.
 */
async function isRareNetwork(
  tx: EntityManager,
  orgId: string,
  { network }: AuditFilter,
): Promise<boolean> {
  if (!network || network.isOneAddress) return false;
  const { text, values } = networkStatement(orgId, network);
  const [row] = await composedSql<{ n: number }>(tx, text, values);
  return (row?.n ?? 0) <= SEARCH_BOUNDS.fewOfNetwork;
}

/**
 * Converts a row of the table to an event. The position of the event has its time to the
 * microsecond.
 */
export function eventOf(row: Row): AuditRow {
  return {
    id: row.id,
    type: row.type,
    class: row.class,
    actorId: row.actor_id,
    subjectId: row.subject_id,
    actorEmail: row.actor_email,
    subjectEmail: row.subject_email,
    clientName: row.client_name,
    requestId: row.request_id,
    ip: row.ip,
    userAgent: row.user_agent,
    details: row.details,
    createdAt: row.created_at,
    place: { at: row.at, id: row.id },
  };
}
