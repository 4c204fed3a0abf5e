import type { AuditOrigin } from '#domain/audit/audit-origin.js';

/** Whose identity provider acts: by which token, and from where. */
export interface ScimActor {
  readonly orgId: string;
  /** The id of its SCIM token. */
  readonly tokenId: string;
  readonly origin: AuditOrigin;
}
