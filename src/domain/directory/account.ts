import type { RevocationCause, RevokedCounts } from '#domain/access-revocation/revocable.js';
import type { AuditEvent } from '#domain/audit/audit-event.js';
import type { User } from './users.repository.js';

/**
 * The audit event that a change of an account records: an act of an admin, or an operation of SCIM.
 */
export interface AccountAudit extends Pick<AuditEvent, 'actorId' | 'origin' | 'details'> {
  readonly type:
    | 'admin_remove_user'
    | 'admin_deactivate'
    | 'admin_activate'
    | 'admin_revoke_credentials'
    | 'enrollment_pass_created'
    | 'scim_operation';
}

/**
 * The reason why a user's access ends, and the author of the act, with its audit event. Each
 * revoked row and the audit log store both.
 */
export interface Deprovisioning extends RevocationCause {
  readonly audit: AccountAudit;
  /**
   * The counts of items that a foreign key deletes together with the account. The caller counts
   * them before it deletes the account, because they do not exist afterwards.
   */
  readonly endedByForeignKey?: RevokedCounts;
}

/**
 * A user whose row the transaction has locked, with the facts that a change of the account needs.
 */
export type LockedAccount = Pick<User, 'id' | 'orgId' | 'isOrgAdmin' | 'active'>;

/** A member who may become the first admin of an organization. */
export interface AdminCandidate {
  readonly id: string;
  readonly orgId: string;
  readonly email: string;
}
