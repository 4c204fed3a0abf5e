import type { AccountClaims } from 'oidc-provider';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';

/** Which claims each scope stands for (OpenID Connect Core §5.4). */
export const CLAIMS_OF_SCOPES = {
  openid: ['sub', 'hardware_verified', 'hardware_aaguid', 'acr', 'amr', 'auth_time'],
  email: ['email', 'email_verified'],
  profile: ['name'],
};

/** What a session proved, in tokens and introspection alike. Of whom no key asserted, nothing is said but that. */
export function proofClaims(holder: ResourceOwner) {
  return {
    hardware_verified: holder.hardwareVerified,
    ...(holder.hardwareAaguid === null ? {} : { hardware_aaguid: holder.hardwareAaguid }),
    auth_time: epochSeconds(holder.authTime),
    ...(holder.amr.length === 0 ? {} : { amr: [...holder.amr] }),
    ...(holder.acr === null ? {} : { acr: holder.acr }),
  };
}

/** What access tokens say beside what every one of them does. */
export function accessTokenClaims(holder: ResourceOwner) {
  return { ...(holder.email === null ? {} : { email: holder.email }), ...proofClaims(holder) };
}

/** What ID tokens and userinfo may say; the library picks by scope and by what was asked for. */
export function accountClaims(holder: ResourceOwner): AccountClaims {
  const { email, name, userId } = holder;
  return {
    sub: userId,
    ...(email === null ? {} : { email, email_verified: true }),
    ...(name === null ? {} : { name }),
    ...proofClaims(holder),
  };
}

/** Seconds of the epoch, as JWTs count (RFC 7519 §2). */
export function epochSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}
