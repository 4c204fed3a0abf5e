import { ADMIN_SCOPE, CLI_CLIENT_ID } from '#domain/sessions/access-token.js';

export { ADMIN_SCOPE, CLI_CLIENT_ID };

/** What ID tokens and userinfo are about. */
export const OIDC_SCOPES = ['openid', 'profile', 'email'] as const;

/** What opens our own APIs: for svc-cli alone. */
export const OWN_SCOPES = ['svc:credentials', 'svc:applications', ADMIN_SCOPE] as const;

/** Whether a scope is one that only svc-cli may hold: any that begins with ours, known or not. */
export function isOwnScope(scope: string): boolean {
  return scope.startsWith('svc:');
}

/** The single scopes of a `scope` (RFC 6749 §3.3). */
export function scopeWords(scope: string | undefined): string[] {
  return (scope ?? '').split(' ').filter((word) => word !== '');
}

/**
 * What of the scopes a client asks for it may have of a person who is not asked: our own for our own client alone, and the
 * organization's administration of nobody but its admins.
 */
export function grantedScopes(
  asked: readonly string[],
  client: { readonly clientId: string },
  holder: { readonly isOrgAdmin: boolean; readonly orgId: string | null },
): string[] {
  const known: ReadonlySet<string> = new Set([...OIDC_SCOPES, ...OWN_SCOPES]);
  const isAdmin = holder.isOrgAdmin && holder.orgId !== null;
  const mayHave = (scope: string) =>
    !isOwnScope(scope) || (client.clientId === CLI_CLIENT_ID && (scope !== ADMIN_SCOPE || isAdmin));
  return asked.filter((scope) => known.has(scope) && mayHave(scope));
}

/**
 * Leaves `svc:admin` out for a client that proves no DPoP key (RFC 9449): a stolen token of an administrator would open
 * the organization.
 */
export function boundScopes(scopes: readonly string[], isDpopBound: boolean): string[] {
  return scopes.filter((scope) => isDpopBound || scope !== ADMIN_SCOPE);
}
