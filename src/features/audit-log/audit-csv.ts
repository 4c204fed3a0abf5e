import type { AuditRow } from '#domain/audit/audit-filter.js';
import { csvLine } from '#platform/text/csv.js';

/**
 * The columns of a CSV export of the audit log, each with the function that returns an event's
 * value.
 */
const COLUMNS: Readonly<Record<string, (row: AuditRow) => string | null>> = {
  time: (row) => row.createdAt.toISOString(),
  type: (row) => row.type,
  class: (row) => row.class,
  actor: (row) => row.actorEmail,
  subject: (row) => row.subjectEmail,
  application: (row) => row.clientName,
  address: (row) => row.ip,
  browser: (row) => row.userAgent,
  request_id: (row) => row.requestId,
  id: (row) => row.id,
  actor_id: (row) => row.actorId,
  subject_id: (row) => row.subjectId,
  details: (row) => JSON.stringify(row.details),
};

/** The first line of a CSV export of the audit log: the names of the columns. */
export const CSV_HEADER = `${Object.keys(COLUMNS).join(',')}\r\n`;

/** Returns an audit event as a line of CSV (RFC 4180). */
export function eventLine(row: AuditRow): string {
  return csvLine(Object.values(COLUMNS).map((valueOf) => valueOf(row) ?? ''));
}
