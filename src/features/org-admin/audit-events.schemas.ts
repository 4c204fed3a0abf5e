import { z } from 'zod';
import { AUDIT_TYPES } from '#domain/audit/audit-event.js';
import type { AuditFilter, AuditPlace, AuditRow } from '#domain/audit/audit-events.repository.js';
import { parseEmailAddress } from '#domain/organizations/email-address.js';
import { readCursor } from './audit-cursor.js';

/** How many events a page shows. */
const PAGE_SIZE = { usual: 100, most: 1000 } as const;

const time = z.iso
  .datetime({ offset: true, error: 'must be a time as RFC 3339 writes it' })
  .transform((text) => new Date(text));

/** `GET /api/v1/org/audit-events`. What it does not know is refused: a search that is not understood would look like an empty log. */
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
    /** The `next` of the page before. */
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

/** What is asked of the log. */
export interface AuditQuery {
  readonly filter: AuditFilter;
  readonly after: AuditPlace | undefined;
  /** Undefined: a page of the usual size, or all lines. */
  readonly limit: number | undefined;
}

/** How many events a page has that says nothing of it. */
export const USUAL_PAGE = PAGE_SIZE.usual;

/** An event as the API shows it. */
export interface AuditJson {
  readonly id: string;
  readonly type: string;
  readonly class: string;
  readonly actor_id: string | null;
  readonly subject_id: string | null;
  /** The addresses of both, and the name of the client, as they were when it happened; null in events from before 0.5. */
  readonly actor_email: string | null;
  readonly subject_email: string | null;
  readonly client_name: string | null;
  readonly request_id: string | null;
  readonly ip: string | null;
  readonly user_agent: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  readonly created_at: string;
}

/** Renders an event. */
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
