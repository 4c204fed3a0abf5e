import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { MAX } from 'uuid';
import { sql } from '#platform/database/sql.js';

/** A place in the order of audit events: an event, by its time to the microsecond and its id. */
export interface AuditPlace {
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly id: string;
}

/** Which of an organization's events: those that fit whatever is named. */
export interface AuditFilter {
  readonly type?: string | undefined;
  /** The actor or the subject. */
  readonly userId?: string | undefined;
  /** That of the actor or the subject, or one that the event itself names: people go, and their events stay. */
  readonly email?: string | undefined;
  readonly from?: Date | undefined;
  /** Exclusive. */
  readonly to?: Date | undefined;
}

/** An event as it is kept. */
export interface AuditRow {
  readonly id: string;
  readonly type: string;
  readonly class: string;
  readonly actorId: string | null;
  readonly subjectId: string | null;
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
  request_id: string | null;
  ip: string | null;
  user_agent: string | null;
  details: Record<string, unknown>;
  created_at: Date;
  at: string;
}

/** The audit log, read: of one organization, and nobody else's. */
@Injectable()
export class AuditEventsRepository {
  /** The events of an organization that fit, the newest first, from after a place. */
  async list(
    tx: EntityManager,
    orgId: string,
    { type, userId, email, from, to }: AuditFilter,
    { after, limit }: { readonly after: AuditPlace | undefined; readonly limit: number },
  ): Promise<AuditRow[]> {
    const rows = await sql<Row>(tx)`
      SELECT e.id, e.type, e.class, e.actor_id, e.subject_id, e.request_id, host(e.ip) AS ip, e.user_agent, e.details,
             e.created_at, to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at
      FROM audit_events e
      WHERE e.org_id = ${orgId}
        AND (e.created_at, e.id) < (${after?.at ?? 'infinity'}::timestamptz, ${after?.id ?? MAX}::uuid)
        AND e.created_at >= coalesce(${from ?? null}::timestamptz, '-infinity')
        AND e.created_at < coalesce(${to ?? null}::timestamptz, 'infinity')
        AND (${type ?? null}::text IS NULL OR e.type = ${type ?? null})
        AND (${userId ?? null}::uuid IS NULL OR ${userId ?? null} IN (e.actor_id, e.subject_id))
        AND (${email ?? null}::text IS NULL OR e.details ->> 'email' = ${email ?? null}
             OR EXISTS (SELECT 1 FROM users u
                        WHERE u.org_id = e.org_id AND u.email = ${email ?? null} AND u.id IN (e.actor_id, e.subject_id)))
      ORDER BY e.created_at DESC, e.id DESC LIMIT ${limit}`;
    return rows.map((row) => ({
      id: row.id,
      type: row.type,
      class: row.class,
      actorId: row.actor_id,
      subjectId: row.subject_id,
      requestId: row.request_id,
      ip: row.ip,
      userAgent: row.user_agent,
      details: row.details,
      createdAt: row.created_at,
      place: { at: row.at, id: row.id },
    }));
  }
}
