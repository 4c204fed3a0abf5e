import type { ResourceOwner, UserProfile } from './resource-owner.js';

/** A grant to whose resource owner tokens may still be issued. */
export interface LiveGrant {
  readonly payload: Record<string, unknown>;
  readonly resourceOwner: ResourceOwner;
  /** True if the grant has expired, although its session still lasts. */
  readonly isOver: boolean;
}

/** A row of the view `oauth_holders`: the resource owner of a session. */
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

/** A row of the table `oauth_grants` with the columns of its resource owner. */
export interface OwnedGrantRow extends ResourceOwnerRow {
  payload: Record<string, unknown>;
  is_over: boolean;
}

/** Makes a {@link LiveGrant} from a row of the grant and its resource owner. */
export function liveGrant(row: OwnedGrantRow): LiveGrant {
  return { payload: row.payload, resourceOwner: resourceOwner(row), isOver: row.is_over };
}

/** Makes a {@link ResourceOwner} from a row of `oauth_holders`. */
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

/** A row with the columns of a user's profile. */
export interface ProfileRow {
  given_name: string | null;
  family_name: string | null;
  user_name: string | null;
  updated_at: Date;
}

/** Makes a {@link UserProfile} from a row. */
export function userProfile(row: ProfileRow): UserProfile {
  return {
    givenName: row.given_name,
    familyName: row.family_name,
    userName: row.user_name,
    updatedAt: row.updated_at,
  };
}
