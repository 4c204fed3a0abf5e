import type { AuditOrigin } from '#domain/audit/audit-origin.js';

/** The identity provider of an organization, as the actor of a change. */
export interface ScimActor {
  readonly orgId: string;
  /** The id of its SCIM token. */
  readonly tokenId: string;
  readonly origin: AuditOrigin;
}

/** Describes a change for the audit log. */
export function scimOperation(
  { orgId, tokenId, origin }: ScimActor,
  operation: 'create' | 'update' | 'delete',
  resourceType: 'User' | 'Group',
  resourceId: string,
  more: Readonly<Record<string, unknown>> = {},
) {
  const about = { operation, resource_type: resourceType, resource_id: resourceId };
  const details = { ...about, scim_token_id: tokenId, ...more };
  return { type: 'scim_operation', orgId, origin, details } as const;
}
