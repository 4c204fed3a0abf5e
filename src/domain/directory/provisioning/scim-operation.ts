import type { AuditOrigin } from '#domain/audit/audit-origin.js';

/** The identity provider of an organization, as the actor of a change by SCIM. */
export interface ScimActor {
  readonly orgId: string;
  /** The id of the SCIM token with which the identity provider sent the request. */
  readonly tokenId: string;
  readonly origin: AuditOrigin;
}

/**
 * A part of a write that was left out because it cannot be applied. The rest of the write is done
 * nevertheless, because it ends access.
 */
export interface LeftOut {
  /** The path or the key of the part, as the client wrote it. */
  readonly name: string;
  /** The code of the error for which the part was left out. */
  readonly reason: string;
}

/** The most left-out parts that an audit event names. */
const MOST_NAMED = 20;

/** Returns the details of an audit event that name the parts of a write that were left out. */
export function leftOutDetails(
  leftOut: readonly LeftOut[] = [],
): Readonly<Record<string, unknown>> {
  return leftOut.length === 0 ? {} : { left_out: leftOut.slice(0, MOST_NAMED) };
}

/** Returns the audit event of a change by SCIM. */
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
