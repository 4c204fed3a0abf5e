import type { AuditOrigin } from './audit-origin.js';

/** Every type of audit event and its class, which decides how long it is kept. Extend it; never rename. */
export const AUDIT_CLASS = {
  login_success: 'auth',
  login_failed: 'auth',
  enrollment: 'auth',
  logout: 'auth',
  key_renamed: 'auth',
  email_changed: 'auth',
  identity_bound: 'auth',
  identity_bind_refused: 'auth',
  ssh_credential: 'oauth',
  admin_promote: 'admin',
} as const satisfies Record<string, 'auth' | 'oauth' | 'admin'>;

/** The closed union of audit event types. */
export type AuditType = keyof typeof AUDIT_CLASS;

/** Something that happened: who did it, to whom, in which organization, from where. */
export interface AuditEvent {
  readonly type: AuditType;
  readonly actorId: string | null;
  readonly subjectId: string | null;
  readonly orgId: string | null;
  readonly origin: AuditOrigin;
  /** What else is worth knowing; never a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
}
