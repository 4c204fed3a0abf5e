import { z } from 'zod';
import { AUDIT_TYPES } from '#domain/audit/audit-event.js';
import type { AuditFilter, AuditPlace, AuditRow } from '#domain/audit/audit-events.repository.js';
import { parseEmailAddress } from '#domain/organizations/email-address.js';
import { readCursor } from './audit-cursor.js';

/** The number of events on a page. */
const PAGE_SIZE = { usual: 100, most: 1000 } as const;

const time = z.iso
  .datetime({ offset: true, error: 'must be a time as RFC 3339 writes it' })
  .transform((text) => new Date(text));

/** The query of `GET /api/v1/org/audit-events`. An unknown parameter is an error: ignored, it would look like an empty log. */
export const AUDIT_QUERY = z
  .strictObject({
    type: z.enum(AUDIT_TYPES, { error: 'must be the type of an event' }).optional(),
    user: z.guid('must be the id of a user').optional(),
    email: z
      .string()
      .transform((text, context): string => {
        const address = parseEmailAddress(text);
        if (address !== undefined) return address;
        context.addIssue({ code: 'custom', message: 'must be an e-mail address' });
        return z.NEVER;
      })
      .optional(),
    from: time.optional(),
    to: time.optional(),
    /** The `next` of the previous page. */
    after: z
      .string()
      .max(128)
      .transform((text, context): AuditPlace => {
        const place = readCursor(text);
        if (place) return place;
        context.addIssue({ code: 'custom', message: 'must be the next of a page before' });
        return z.NEVER;
      })
      .optional(),
    limit: z
      .string()
      .regex(/^\d{1,4}$/, 'must be a whole number')
      .transform(Number)
      .pipe(z.int().min(1).max(PAGE_SIZE.most))
      .optional(),
  })
  .transform(({ type, user: userId, email, from, to, after, limit }): AuditQuery => ({
    filter: { type, userId, email, from, to },
    after,
    limit,
  }));

/** A search in the audit log. */
export interface AuditQuery {
  readonly filter: AuditFilter;
  readonly after: AuditPlace | undefined;
  /** Undefined for a page of the usual size, or for all lines. */
  readonly limit: number | undefined;
}

/** The number of events on a page without `limit`. */
export const USUAL_PAGE = PAGE_SIZE.usual;

/** An event in the JSON of the API. */
export interface AuditJson {
  readonly id: string;
  readonly type: string;
  readonly class: string;
  readonly actor_id: string | null;
  readonly subject_id: string | null;
  /** The addresses of both users and the name of the client at the time of the event; null in events from before 0.5. */
  readonly actor_email: string | null;
  readonly subject_email: string | null;
  readonly client_name: string | null;
  readonly request_id: string | null;
  readonly ip: string | null;
  readonly user_agent: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  readonly created_at: string;
}

/** Renders an event as JSON. */
export function auditJson(row: AuditRow): AuditJson {
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
