import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import type { AccountClaims } from './library.js';

/** The claims of each scope (OpenID Connect Core §5.4). */
export const CLAIMS_OF_SCOPES = {
  openid: ['sub', 'hardware_verified', 'hardware_aaguid', 'acr', 'amr', 'auth_time'],
  email: ['email', 'email_verified'],
  profile: ['name'],
};

/** Returns the claims about a session's login. For a synthetic session `hardware_verified` is false. */
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

/** Returns the claims that access tokens and introspection have beside the standard ones. */
export function accessTokenClaims(resourceOwner: ResourceOwner) {
  return {
    ...(resourceOwner.email === null ? {} : { email: resourceOwner.email }),
    ...proofClaims(resourceOwner),
  };
}

/** Returns all claims of ID tokens and userinfo. The library selects by scope and by the `claims` parameter. */
export function accountClaims(resourceOwner: ResourceOwner): AccountClaims {
  const { email, name, userId } = resourceOwner;
  return {
    sub: userId,
    ...(email === null ? {} : { email, email_verified: true }),
    ...(name === null ? {} : { name }),
    ...proofClaims(resourceOwner),
  };
}

/** Converts a date to seconds since 1970 (RFC 7519 §2, NumericDate). */
export function epochSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}
