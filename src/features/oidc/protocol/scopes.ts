import {
  ADMIN_SCOPE,
  APPLICATIONS_SCOPE,
  CLI_CLIENT_ID,
  DEVICE_SCOPES,
  isBoundScope,
} from '#domain/sessions/access-token.js';
import { isSignalScope } from '#domain/oauth/shared-signals/receivers.repository.js';

export { ADMIN_SCOPE, CLI_CLIENT_ID };

/** The scopes of OpenID Connect, which select the claims of ID tokens and userinfo. */
export const OIDC_SCOPES = ['openid', 'profile', 'email'] as const;

/** The scope for issuing a user's credentials: SSH certificates and tokens for other services. */
export const CREDENTIALS_SCOPE = 'svc:credentials';

/** The scopes of this server's own APIs, which only `svc-cli`, our command-line client, gets. */
export const OWN_SCOPES = [CREDENTIALS_SCOPE, APPLICATIONS_SCOPE, ADMIN_SCOPE] as const;

/**
 * Returns true if a scope belongs to this service. Scopes with the prefix `svc:` are for svc-cli
 * only. Scopes for signals, which are security events about users, are for applications that an
 * admin has allowed to receive them.
 */
export function isOwnScope(scope: string): boolean {
  return scope.startsWith('svc:') || isSignalScope(scope);
}

/** Splits the parameter `scope` into its scopes (RFC 6749 §3.3). */
export function scopeWords(scope: string | undefined): string[] {
  return (scope ?? '').split(' ').filter((word) => word !== '');
}

/**
 * Returns those requested scopes that a client may get for a user. Only `svc-cli`, our command-line
 * client, gets scopes of our own APIs, and `svc:admin` needs an admin of an organization.
 */
export function grantedScopes(
  requested: readonly string[],
  client: { readonly clientId: string },
  resourceOwner: { readonly isOrgAdmin: boolean; readonly orgId: string | null },
): string[] {
  const known: ReadonlySet<string> = new Set([...OIDC_SCOPES, ...OWN_SCOPES]);
  const isAdmin = resourceOwner.isOrgAdmin && resourceOwner.orgId !== null;
  const mayHave = (scope: string) =>
    !isOwnScope(scope) || (client.clientId === CLI_CLIENT_ID && (scope !== ADMIN_SCOPE || isAdmin));
  return requested.filter((scope) => known.has(scope) && mayHave(scope));
}

/**
 * Removes `svc:admin` and `svc:applications`, unless the client sends a DPoP proof (RFC 9449) that
 * binds the token to a key. With a stolen token of these scopes, an attacker could control the
 * organization. The attacker could also redirect its members to another site after a login.
 */
export function boundScopes(scopes: readonly string[], isDpopBound: boolean): string[] {
  return scopes.filter((scope) => isDpopBound || !isBoundScope(scope));
}

/** Removes the scopes that our command-line client `svc-cli` does not get by a device code. */
export function deviceScopes(scopes: readonly string[]): string[] {
  return scopes.filter((scope) => DEVICE_SCOPES.has(scope));
}
