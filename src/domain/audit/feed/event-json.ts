import type { AuditRow } from '../audit-filter.js';
import type { FeedRow } from './audit-feed.repository.js';
import { writeFeedCursor } from './feed-cursor.js';

/**
 * An audit event in JSON, as the API returns it and as event receivers get it. `created_at` is RFC
 * 3339 in UTC.
 */
export interface EventJson {
  readonly id: string;
  readonly type: string;
  readonly class: string;
  readonly actor_id: string | null;
  readonly subject_id: string | null;
  readonly actor_email: string | null;
  readonly subject_email: string | null;
  readonly client_name: string | null;
  readonly request_id: string | null;
  readonly ip: string | null;
  readonly user_agent: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  readonly created_at: string;
}

/** Renders an audit event as JSON. */
export function auditJson(row: AuditRow): EventJson {
  return {
    id: row.id,
    type: row.type,
    class: row.class,
    actor_id: row.actorId,
    subject_id: row.subjectId,
    actor_email: row.actorEmail,
    subject_email: row.subjectEmail,
    client_name: row.clientName,
    request_id: row.requestId,
    ip: row.ip,
    user_agent: row.userAgent,
    details: row.details,
    created_at: row.createdAt.toISOString(),
  };
}

/**
 * Renders an event of the feed, which is the audit log in the order for programs, as JSON with its
 * cursor.
 */
export function feedJson(row: FeedRow): EventJson & { readonly cursor: string } {
  return { ...auditJson(row), cursor: writeFeedCursor(row.feedPlace) };
}
