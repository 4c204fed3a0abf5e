import type { AuditPlace } from '#domain/audit/audit-filter.js';
import type { AuditType } from '#domain/audit/audit-event.js';
import { ISSUANCE, OTHER } from '#domain/audit/search-keys.js';
import { IN_RANGE_SINCE } from '#domain/ssh/serials/revoked-ranges.repository.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** An audit event of which a user is the actor or the subject. */
export interface OwnEvent {
  readonly id: string;
  readonly type: AuditType;
  readonly actorId: string | null;
  readonly subjectId: string | null;
  /**
   * The e-mail address of the actor at the time of the event; null if there is none. `subjectEmail`
   * and `clientName` are values of that time too.
   */
  readonly actorEmail: string | null;
  readonly subjectEmail: string | null;
  readonly clientName: string | null;
  readonly requestId: string | null;
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  readonly createdAt: Date;
  readonly place: AuditPlace;
}

/**
 * The event of an issued credential. For an SSH certificate it includes the time of its revocation.
 */
export interface IssuanceEvent extends OwnEvent {
  readonly revokedAt: Date | null;
}

/**
 * The part of a list of events that a statement reads: at most `limit` events after a position in
 * the list, the newest first.
 */
export interface EventRange {
  readonly after: AuditPlace | undefined;
  readonly limit: number;
}

type Row = Omit<OwnEvent, 'place'> & { readonly at: string };

const COLUMNS = fragment`e.id, e.type, e.actor_id AS "actorId", e.subject_id AS "subjectId", e.actor_email AS "actorEmail",
  e.subject_email AS "subjectEmail", e.client_name AS "clientName", e.request_id AS "requestId", host(e.ip) AS ip,
  e.user_agent AS "userAgent", e.details, e.created_at AS "createdAt", e.created_at AS placed, e.id AS place_id,
  to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at`;

/**
 * Returns the SQL condition for the events after a position in the list. The newest events come
 * first, so these events are older.
 */
function afterPlace(after: AuditPlace | undefined): SqlFragment {
  if (!after) return fragment`TRUE`;
  return fragment`(e.created_at, e.id) < (${after.at}::timestamptz, ${after.id}::uuid)`;
}

/**
 * Lists the events of which a user is the subject or the actor, the newest first. The statement
 * combines three searches. Each search reads at most one page, from an index that is sorted like
 * the list.
 */
export async function listOwnEvents(
  tx: EntityManager,
  userId: string,
  { after, limit }: EventRange,
): Promise<OwnEvent[]> {
  const range = fragment`${afterPlace(after)} ORDER BY e.created_at DESC, e.id DESC LIMIT ${limit}`;
  const rows = await sql<Row>(tx)`
    SELECT * FROM (
      (SELECT ${COLUMNS} FROM audit_events e WHERE e.subject_id = ${userId} AND ${ISSUANCE} AND ${range})
      UNION ALL
      (SELECT ${COLUMNS} FROM audit_events e WHERE e.subject_id = ${userId} AND ${OTHER} AND ${range})
      UNION ALL
      (SELECT ${COLUMNS} FROM audit_events e
       WHERE e.actor_id = ${userId} AND e.actor_id IS DISTINCT FROM e.subject_id AND ${range})
    ) found
    ORDER BY placed DESC, place_id DESC LIMIT ${limit}`;
  return rows.map(ownEvent);
}

/**
 * Lists the events in which credentials were issued in the name of a user, the newest first. A
 * token exchange (RFC 8693) has two events; only the one of the type `token_exchange` is listed. An
 * index serves the conditions and the order of this list.
 */
export async function listOwnIssuances(
  tx: EntityManager,
  userId: string,
  { after, limit }: EventRange,
): Promise<IssuanceEvent[]> {
  const rows = await sql<Row & { readonly revokedAt: Date | null }>(tx)`
    SELECT ${COLUMNS}, coalesce(c.revoked_at, ${IN_RANGE_SINCE}) AS "revokedAt"
    FROM audit_events e
    LEFT JOIN ssh_certificates c
      ON e.type = 'ssh_credential' AND c.serial = (e.details ->> 'serial')::bigint AND c.user_id = e.subject_id
    WHERE e.subject_id = ${userId} AND ${afterPlace(after)}
      AND ${ISSUANCE}
    ORDER BY e.created_at DESC, e.id DESC LIMIT ${limit}`;
  return rows.map((row) => ({ ...ownEvent(row), revokedAt: row.revokedAt }));
}

function ownEvent(row: Row): OwnEvent {
  const { id, type, actorId, subjectId, actorEmail, subjectEmail, clientName } = row;
  const { requestId, ip, userAgent, details, createdAt, at } = row;
  const users = { actorId, subjectId, actorEmail, subjectEmail, clientName };
  const origin = { requestId, ip, userAgent };
  return { id, type, ...users, ...origin, details, createdAt, place: { at, id } };
}
