import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { recordAudit } from '#domain/audit/audit.repository.js';
import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';
import { ISSUED } from './issuance-statement.repository.js';

/**
 * The parts of a request for a credential that its audit event needs: the id that the event gets,
 * and the origin of the request.
 */
export interface RequestOfUser {
  readonly auditId: string;
  readonly origin: AuditOrigin;
}

/** The names and PostgreSQL types of the columns that {@link auditValues} fills. */
export const AUDIT_COLUMNS = {
  audit_id: 'uuid',
  request_id: 'text',
  ip: 'inet',
  user_agent: 'text',
} as const;

/** Returns the values of the {@link AUDIT_COLUMNS} for one request for a credential. */
export function auditValues({ auditId, origin }: RequestOfUser) {
  return {
    audit_id: auditId,
    request_id: origin.requestId,
    ip: origin.ip,
    user_agent: origin.userAgent,
  };
}

/**
 * Returns the SQL that writes one audit event for each issued credential. It is for credentials
 * that users request for themselves, so the user is both actor and subject of the event.
 *
 * @param type the type of the event, as an SQL string
 * @param details an SQL expression of type jsonb. It can read the alias `i`, a row with one request
 *   and the decision about it
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
