import type { AuditRow } from '#domain/audit/audit-filter.js';
import type { CsvColumns } from '#platform/text/csv.js';

/** The columns of a CSV export of the audit log. */
export const AUDIT_COLUMNS: CsvColumns<AuditRow> = {
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
