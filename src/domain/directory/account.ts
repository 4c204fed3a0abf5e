import type { RevocationCause, RevokedCounts } from '#domain/access-revocation/revocable.js';
import type { AuditEvent } from '#domain/audit/audit-event.js';
import type { User } from './users.repository.js';

/** The audit event of a change to an account: an act of an admin, or an operation of SCIM. */
export interface AccountAudit extends Pick<AuditEvent, 'actorId' | 'origin' | 'details'> {
  readonly type:
    | 'admin_remove_user'
    | 'admin_deactivate'
    | 'admin_activate'
    | 'admin_revoke_credentials'
    | 'enrollment_pass_created'
    | 'scim_operation';
}

/** The reason that ends the access of a user, for the revocation records and the audit log. */
export interface Deprovisioning extends RevocationCause {
  readonly audit: AccountAudit;
  /**
   * The items that a foreign key ends with the account. They are counted before the account is
   * deleted, because they do not exist afterwards.
   */
  readonly endedByForeignKey?: RevokedCounts;
}

/**
 * A user whose row the transaction has locked, with the facts that a change to the account reads.
 */
export type LockedAccount = Pick<User, 'id' | 'orgId' | 'isOrgAdmin' | 'active'>;

/** A member who may become the first admin of an organization. */
export interface AdminCandidate {
  readonly id: string;
  readonly orgId: string;
  readonly email: string;
}
