import type { ResourceOwner, UserProfile } from '#domain/oauth/grants/resource-owner.js';
import type { OwnMetadata } from './client-metadata.js';
import type { AccountClaims } from './library.js';
import { scopeWords } from './scopes.js';

/** The claims that each scope selects (OpenID Connect Core §5.4). */
export const CLAIMS_OF_SCOPES = {
  openid: ['sub', 'hardware_verified', 'hardware_aaguid', 'acr', 'amr', 'auth_time', 'sid'],
  email: ['email', 'email_verified'],
  profile: ['name', 'given_name', 'family_name', 'preferred_username', 'updated_at'],
};

/**
 * Returns the claims about the login of a session. `hardware_verified` is false only in
 * certification test mode, in which users log in without a security key.
 */
export function proofClaims(resourceOwner: ResourceOwner) {
  return {
    hardware_verified: resourceOwner.hardwareVerified,
    ...(resourceOwner.hardwareAaguid === null
      ? {}
      : { hardware_aaguid: resourceOwner.hardwareAaguid }),
    auth_time: epochSeconds(resourceOwner.authTime),
    ...(resourceOwner.amr.length === 0 ? {} : { amr: [...resourceOwner.amr] }),
    ...(resourceOwner.acr === null ? {} : { acr: resourceOwner.acr }),
  };
}

/**
 * Returns the claims that access tokens and introspection have in addition to the standard ones.
 * `org_id` lets a resource server tell the organizations of the service apart.
 *
 * @param hasEmail false if the client may not see the user's e-mail address
 */
export function accessTokenClaims(resourceOwner: ResourceOwner, hasEmail = true) {
  const { email, orgId } = resourceOwner;
  return {
    ...(email === null || !hasEmail ? {} : { email }),
    ...(orgId === null ? {} : { org_id: orgId }),
    ...proofClaims(resourceOwner),
  };
}

/**
 * Returns true if a token may contain the e-mail address of its user. The token of a client that
 * registered itself needs the scope `email`.
 */
export function mayNameEmail(client: OwnMetadata | undefined, scope: string | undefined): boolean {
  return client?.svc_kind !== 'dynamic' || scopeWords(scope).includes('email');
}

/**
 * Returns true if a request asks for claims about the profile: by the scope `profile`, or by the
 * name of such a claim (OpenID Connect Core §5.5).
 */
export function asksForProfile(scope: string, claims: object): boolean {
  return (
    scopeWords(scope).includes('profile') ||
    CLAIMS_OF_SCOPES.profile.some((claim) => claim in claims)
  );
}

/**
 * Returns all claims of ID tokens and userinfo. The OAuth library selects some of them by the scope
 * and the parameter `claims`.
 *
 * @param profile undefined if the request asks for no claim of the profile
 */
export function accountClaims(
  resourceOwner: ResourceOwner,
  profile: UserProfile | undefined,
): AccountClaims {
  const { email, name, userId } = resourceOwner;
  return {
    sub: userId,
    ...(email === null ? {} : { email, email_verified: true }),
    ...(name === null ? {} : { name }),
    ...(profile && profileClaims(profile)),
    ...proofClaims(resourceOwner),
  };
}

/**
 * Returns the claims of an ID token: all claims about the account, and the id of the session. When
 * the session ends, a logout token names it by that id (OpenID Connect Back-Channel Logout §2.1).
 */
export function idTokenClaims(
  resourceOwner: ResourceOwner,
  profile: UserProfile | undefined,
): AccountClaims {
  const { sid } = resourceOwner;
  return { ...accountClaims(resourceOwner, profile), ...(sid === null ? {} : { sid }) };
}

/**
 * Returns the claims about a user's profile whose values are known (OpenID Connect Core §5.1).
 * Clients must not identify a user by them, because they can change.
 */
function profileClaims({ givenName, familyName, userName, updatedAt }: UserProfile) {
  return {
    ...(givenName === null ? {} : { given_name: givenName }),
    ...(familyName === null ? {} : { family_name: familyName }),
    ...(userName === null ? {} : { preferred_username: userName }),
    updated_at: epochSeconds(updatedAt),
  };
}

/** Converts a date to seconds since 1970 (RFC 7519 §2, NumericDate). */
export function epochSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}
