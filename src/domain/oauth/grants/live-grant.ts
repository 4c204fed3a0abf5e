import type { ResourceOwner, UserProfile } from './resource-owner.js';

/** A grant whose resource owner may still be issued tokens. */
export interface LiveGrant {
  readonly payload: Record<string, unknown>;
  readonly resourceOwner: ResourceOwner;
  /** True when the grant has ended, although its session lasts. */
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
  sid: string | null;
}

/** A row of `oauth_grants` joined with its resource owner. */
export interface OwnedGrantRow extends ResourceOwnerRow {
  payload: Record<string, unknown>;
  is_over: boolean;
}

/** Maps a row with these columns to a grant. */
export function liveGrant(row: OwnedGrantRow): LiveGrant {
  return { payload: row.payload, resourceOwner: resourceOwner(row), isOver: row.is_over };
}

/** Maps a row of `oauth_holders` to a resource owner. */
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
    sid: row.sid,
  };
}

/** A row of the profile of a user. */
export interface ProfileRow {
  given_name: string | null;
  family_name: string | null;
  user_name: string | null;
  updated_at: Date;
}

/** Maps a row with these columns to a profile. */
export function userProfile(row: ProfileRow): UserProfile {
  return {
    givenName: row.given_name,
    familyName: row.family_name,
    userName: row.user_name,
    updatedAt: row.updated_at,
  };
}
