import type { AuditOrigin } from './audit-origin.js';
import type { NotedAct } from './noted-act.js';

/**
 * The classes of audit events. Each class has its own retention: the time for which the log keeps
 * its events.
 */
export type AuditClass = 'auth' | 'oauth' | 'admin';

/**
 * Every type of audit event and its class. The class decides how long an event is kept. New types
 * may be added. A type is never renamed, because stored events have its old name.
 */
export const AUDIT_CLASS = {
  login_success: 'auth',
  login_failed: 'auth',
  enrollment: 'auth',
  enrollment_refused: 'auth',
  enrollment_pass_used: 'auth',
  logout: 'auth',
  session_ended: 'auth',
  key_registered: 'auth',
  key_removed: 'auth',
  key_renamed: 'auth',
  email_changed: 'auth',
  identity_bound: 'auth',
  identity_bind_refused: 'auth',
  identity_unbound: 'auth',
  upstream_login: 'auth',
  upstream_login_refused: 'auth',
  device_approved: 'auth',
  admin_access_refused: 'auth',
  ssh_credential: 'oauth',
  ssh_credential_withheld: 'oauth',
  ssh_certificate_revoked: 'oauth',
  aws_credential: 'oauth',
  github_credential: 'oauth',
  github_token_revoked: 'oauth',
  github_revocation_failed: 'oauth',
  token_exchange: 'oauth',
  oauth_token_issued: 'oauth',
  oauth_token_revoked: 'oauth',
  oauth_access_ended: 'oauth',
  scim_request_refused: 'oauth',
  access_refused: 'oauth',
  notice_dead_lettered: 'oauth',
  event_receiver_tested: 'oauth',
  oauth_client_registered: 'admin',
  oauth_client_updated: 'admin',
  oauth_client_deleted: 'admin',
  application_approved: 'admin',
  access_rule_changed: 'admin',
  access_ended: 'admin',
  oauth_secret_added: 'admin',
  oauth_secret_revoked: 'admin',
  scim_operation: 'admin',
  database_confirmed: 'admin',
  admin_promote: 'admin',
  admin_demote: 'admin',
  admin_deactivate: 'admin',
  admin_activate: 'admin',
  admin_revoke_credentials: 'admin',
  admin_remove_user: 'admin',
  member_readmitted: 'admin',
  member_parted: 'admin',
  member_address_given: 'admin',
  scim_user_taken_over: 'admin',
  scim_twin_found: 'admin',
  enrollment_pass_created: 'admin',
  enrollment_pass_revoked: 'admin',
  enrollment_pass_waived: 'admin',
  org_updated: 'admin',
  org_issuer_claimed: 'admin',
  org_issuer_activated: 'admin',
  org_issuer_deactivated: 'admin',
  org_issuer_released: 'admin',
  org_issuer_key_rotated: 'admin',
  org_provider_allowed: 'admin',
  org_provider_withdrawn: 'admin',
  scim_token_created: 'admin',
  scim_token_revoked: 'admin',
  api_token_created: 'admin',
  api_token_rotated: 'admin',
  api_token_revoked: 'admin',
  event_receiver_created: 'admin',
  event_receiver_updated: 'admin',
  event_receiver_secret_rotated: 'admin',
  event_receiver_deleted: 'admin',
  secret_confirmed: 'admin',
  reconciliation_ordered: 'admin',
  org_domain_added: 'admin',
  org_domain_verified: 'admin',
  org_domain_removed: 'admin',
  org_domain_unverified: 'admin',
  domain_assigned: 'admin',
  domain_released: 'admin',
  audit_question_saved: 'admin',
  audit_question_removed: 'admin',
  github_installation_linked: 'admin',
  github_installation_unlinked: 'admin',
  github_installation_changed: 'admin',
} as const satisfies Record<string, AuditClass>;

/** The name of a type of audit event, such as `login_success`. */
export type AuditType = keyof typeof AUDIT_CLASS;

/** Every type of audit event, as a list. */
export const AUDIT_TYPES = Object.keys(AUDIT_CLASS) as AuditType[];

/**
 * An audit event: the user who acted, the user that it is about, the organization, and the origin
 * of the request.
 */
export interface AuditEvent {
  readonly type: AuditType;
  readonly actorId: string | null;
  readonly subjectId: string | null;
  readonly orgId: string | null;
  readonly origin: AuditOrigin;
  /** Further facts about the event. They never contain a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  /**
   * The acts, such as a revocation, that the service repeats if the database loses this commit
   * (after a failover).
   */
  readonly acts?: readonly NotedAct[];
}
