import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { fixedSql, sql } from '#platform/database/statements/sql.js';

/** A place in the order of audit events: an event, by its time to the microsecond and its id. */
export interface AuditPlace {
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly id: string;
}

/** A filter of events: an event matches every field that is set. */
export interface AuditFilter {
  readonly type?: string | undefined;
  /** The actor or the subject. */
  readonly userId?: string | undefined;
  /** The address of the actor or the subject, or an address in the details: events outlive users. */
  readonly email?: string | undefined;
  readonly from?: Date | undefined;
  /** Exclusive. */
  readonly to?: Date | undefined;
}

/** An event in the audit log. */
export interface AuditRow {
  readonly id: string;
  readonly type: string;
  readonly class: string;
  readonly actorId: string | null;
  readonly subjectId: string | null;
  /** The addresses of both users, and the name of the client in the details, at the time of the event. */
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

interface Row {
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

/** An event of the keys of a user, as the audit log has it. */
export interface KeyEvent {
  readonly type:
    'enrollment' | 'enrollment_refused' | 'key_registered' | 'key_removed' | 'key_renamed';
  readonly at: Date;
  readonly ip: string | null;
  /** The model of the key, when its certificate named one. */
  readonly aaguid: string | null;
  /** The name of a key that was added, renamed or removed. */
  readonly name: string | null;
  /** The name of a key before it was renamed. */
  readonly earlierName: string | null;
  /** The reason of a refusal. */
  readonly reason: string | null;
  readonly requestId: string | null;
}

/** The columns of an event, as {@link Row} has them. */
const COLUMNS = `e.id, e.type, e.class, e.actor_id, e.subject_id, e.actor_email, e.subject_email, e.client_name, e.request_id, host(e.ip) AS ip, e.user_agent, e.details,
  e.created_at, to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at`;
const NEWEST_FIRST = 'ORDER BY created_at DESC, id DESC';

/** The part of the log that a search reads. */
export interface AuditRange {
  readonly after: AuditPlace | undefined;
  readonly limit: number;
}

/** Reads the audit log of one organization, or of the keys of one user. */
@Injectable()
export class AuditEventsRepository {
  /** Lists the matching events of an organization after a place, the newest first. */
  async list(
    tx: EntityManager,
    orgId: string,
    filter: AuditFilter,
    page: AuditRange,
  ): Promise<AuditRow[]> {
    const { text, values } = auditSearch(orgId, filter, page);
    const rows = await fixedSql<Row>(tx, text, values);
    return rows.map((row) => ({
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
    }));
  }

  /**
   * Lists the latest events of the keys of a user, the newest first. A key that was refused before the account existed is found
   * by the e-mail address, which the identity provider of the user vouches for.
   */
  listKeyEvents(
    tx: EntityManager,
    user: { readonly id: string; readonly email: string | null },
    limit: number,
  ): Promise<KeyEvent[]> {
    return sql<KeyEvent>(tx)`
      SELECT type, created_at AS at, host(ip) AS ip, details ->> 'aaguid' AS aaguid,
             details ->> 'name' AS name, details ->> 'earlier_name' AS "earlierName", details ->> 'reason' AS reason,
             request_id AS "requestId"
      FROM (
        (SELECT * FROM audit_events
         WHERE subject_id = ${user.id} AND type IN ('enrollment', 'enrollment_refused', 'key_registered', 'key_removed', 'key_renamed')
         ORDER BY created_at DESC, id DESC LIMIT ${limit})
        UNION ALL
        (SELECT * FROM audit_events
         WHERE type = 'enrollment_refused' AND subject_id IS NULL AND details ->> 'email' = ${user.email}
         ORDER BY created_at DESC, id DESC LIMIT ${limit})
      ) events
      ORDER BY created_at DESC, id DESC LIMIT ${limit}`;
  }
}

/**
 * Builds the statement of a search. Each column that can contain the user or the address gets a subquery with an index of its own,
 * which reads at most a page of events. The text depends on the filters that are set, never on their values.
 */
function auditSearch(
  orgId: string,
  { type, userId, email, from, to }: AuditFilter,
  { after, limit }: AuditRange,
): { readonly text: string; readonly values: readonly unknown[] } {
  const values: unknown[] = [orgId, limit];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const conditions: string[] = [];
  if (after) {
    conditions.push(
      `(e.created_at, e.id) < (${bind(after.at)}::timestamptz, ${bind(after.id)}::uuid)`,
    );
  }
  if (from) conditions.push(`e.created_at >= ${bind(from)}::timestamptz`);
  if (to) conditions.push(`e.created_at < ${bind(to)}::timestamptz`);
  if (type !== undefined) conditions.push(`e.type = ${bind(type)}`);
  const byUser = userId === undefined ? undefined : `${bind(userId)}::uuid`;
  let places = byUser === undefined ? [OF_ORGANIZATION] : placesOfUser(byUser);
  if (email !== undefined) {
    const address = bind(email);
    if (byUser !== undefined) conditions.push(`${byUser} IN (e.actor_id, e.subject_id)`);
    const user = `(SELECT u.id FROM users u WHERE u.org_id = $1 AND u.email = ${address})`;
    places = [
      ...placesOfUser(user),
      `${OF_ORGANIZATION} AND e.details ? 'email' AND e.details ->> 'email' = ${address}`,
    ];
  }
  const searches = places.map(
    (place) =>
      `(SELECT ${COLUMNS} FROM audit_events e WHERE ${[place, ...conditions].join(' AND ')} ${NEWEST_FIRST} LIMIT $2)`,
  );
  const [only, ...others] = searches;
  const text =
    only !== undefined && others.length === 0
      ? only
      : `SELECT DISTINCT ON (created_at, id) * FROM (${searches.join(' UNION ALL ')}) found ${NEWEST_FIRST} LIMIT $2`;
  return { text, values };
}

const OF_ORGANIZATION = 'e.org_id = $1';

/**
 * Returns the conditions for a user as subject and as actor. The organization is compared in a form without an index: otherwise the
 * planner could scan the whole log of the organization.
 */
function placesOfUser(user: string): string[] {
  const ofOrganization = 'e.org_id IS NOT DISTINCT FROM $1';
  return [
    `e.subject_id = ${user} AND ${ofOrganization}`,
    `e.actor_id = ${user} AND e.actor_id IS DISTINCT FROM e.subject_id AND ${ofOrganization}`,
  ];
}
