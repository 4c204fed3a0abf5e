import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { recordAudit } from '#domain/audit/audit.repository.js';
import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';
import { ISSUED } from './issuance-statement.repository.js';

/** The columns of a request that its audit event needs. */
export interface RequestOfUser {
  readonly auditId: string;
  readonly origin: AuditOrigin;
}

/** The columns of {@link RequestOfUser} in PostgreSQL. */
export const AUDIT_COLUMNS = fragment`audit_id uuid, request_id text, ip inet, user_agent text`;

/** Writes the {@link AUDIT_COLUMNS} of a request. */
export function auditValues({ auditId, origin }: RequestOfUser) {
  return {
    audit_id: auditId,
    request_id: origin.requestId,
    ip: origin.ip,
    user_agent: origin.userAgent,
  };
}

/**
 * Writes an audit event for each issued row of a kind that a user requests for themselves: the user
 * is actor and subject.
 *
 * @param type the type of the event, as an SQL string
 * @param details a jsonb expression over the decided request `i`
 */
export function auditOfUser(type: SqlFragment, details: SqlFragment): SqlFragment {
  return recordAudit(
    {
      id: fragment`i.audit_id`,
      type,
      actorId: fragment`i.user_id`,
      subjectId: fragment`i.user_id`,
      orgId: fragment`i.org_id`,
      origin: fragment`i.request_id, i.ip, i.user_agent`,
      details,
      actorEmail: fragment`i.user_email`,
      subjectEmail: fragment`i.user_email`,
    },
    ISSUED,
  );
}
