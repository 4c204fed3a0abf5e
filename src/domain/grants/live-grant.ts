import type { ResourceOwner } from './resource-owner.js';

/** A grant whose holder may still be issued something. */
export interface LiveGrant {
  readonly payload: Record<string, unknown>;
  readonly resourceOwner: ResourceOwner;
  /** That the grant itself is over, if not the session that it hangs on. */
  readonly isOver: boolean;
}

/** A row of `oauth_holders`. */
export interface ResourceOwnerRow {
  user_id: string;
  org_id: string | null;
  email: string | null;
  name: string | null;
  is_org_admin: boolean;
  session_id: string;
  level: 'verified' | 'synthetic';
  authenticator_id: string | null;
  aaguid: string | null;
  auth_time: Date;
  amr: string[];
  acr: string | null;
  expires_at: Date;
}

/** A grant joined with who is behind it. */
export interface OwnedGrantRow extends ResourceOwnerRow {
  payload: Record<string, unknown>;
  is_over: boolean;
}

/** A grant as it is read. */
export function liveGrant(row: OwnedGrantRow): LiveGrant {
  return { payload: row.payload, resourceOwner: resourceOwner(row), isOver: row.is_over };
}

/** Somebody as they are read. */
export function resourceOwner(row: ResourceOwnerRow): ResourceOwner {
  return {
    userId: row.user_id,
    orgId: row.org_id,
    email: row.email,
    name: row.name,
    isOrgAdmin: row.is_org_admin,
    sessionId: row.session_id,
    hardwareVerified: row.level === 'verified',
    authenticatorId: row.authenticator_id,
    hardwareAaguid: row.aaguid,
    authTime: row.auth_time,
    amr: row.amr,
    acr: row.acr,
    expiresAt: row.expires_at,
  };
}
