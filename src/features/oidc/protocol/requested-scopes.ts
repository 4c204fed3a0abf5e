import { errors, type Client, type KoaContextWithOIDC } from 'oidc-provider';
import type { OwnMetadata } from './client-metadata.js';
import { OIDC_SCOPES, isOwnScope, scopeWords } from './scopes.js';

/** The scopes of OpenID Connect Core §5.4 and §11, of which some mean nothing here: a client may ask for them all the same. */
const STANDARD: ReadonlySet<string> = new Set([
  ...OIDC_SCOPES,
  'address',
  'phone',
  'offline_access',
]);

/** Where people are asked later for what is asked for here. */
const PUSHED = 'pushed_authorization_request';
const ROUTES: ReadonlySet<string> = new Set([PUSHED, 'authorization', 'device_authorization']);

/**
 * Judges the scopes of an authorization request (RFC 6749 §3.3) before its person logs in. A pushed one names none that is unknown
 * or not available (RFC 9126 §2.3). At other endpoints these are left out (OpenID Connect Core §3.1.2.1), as long as any is left.
 *
 * @throws InvalidScope
 */
export function checkAskedScopes({ oidc }: KoaContextWithOIDC): void {
  const asked = [...oidc.requestParamScopes].filter((scope) => scope !== '');
  if (!ROUTES.has(oidc.route) || asked.length === 0) return;
  const servers = Object.values(oidc.resourceServers ?? {});
  const isAvailable = (scope: string) =>
    oidc.requestParamOIDCScopes.has(scope) || servers.some(({ scopes }) => scopes.has(scope));
  const isKnown = (scope: string) => isAvailable(scope) || STANDARD.has(scope);
  const unknown = oidc.route === PUSHED ? asked.filter((scope) => !isKnown(scope)) : [];
  if (unknown.length > 0 || !asked.some(isAvailable)) {
    throw new errors.InvalidScope(
      'the requested scope is unknown, or not available to this client',
      (unknown.length > 0 ? unknown : asked).join(' '),
    );
  }
}

/** The resource that a client is of its own tokens: no address, since only the client and its colleagues read them. */
export function ownResourceOf({ clientId }: Pick<Client, 'clientId'>): string {
  return `urn:svc:client:${encodeURIComponent(clientId)}`;
}

/** Tells whether a request is for a token of the client's own (RFC 6749 §4.4). */
export function isForClientItself({ oidc }: KoaContextWithOIDC): boolean {
  return oidc.route === 'token' && oidc.params?.['grant_type'] === 'client_credentials';
}

/**
 * Completes the scopes of a request for client credentials that names no resource (RFC 6749 §3.3, §4.4.2): without any it has the
 * application's own, and every one that it names must be one of these or of OpenID Connect.
 *
 * @throws InvalidScope
 */
export function completeOwnScopes(
  { oidc: { params = {} } }: KoaContextWithOIDC,
  client: Client & OwnMetadata,
): void {
  const asked = scopeWords(params['scope'] as string | undefined);
  const own = ownScopesOf(client);
  const known: ReadonlySet<string> = new Set([...own, ...OIDC_SCOPES]);
  const unknown = asked.filter((scope) => !known.has(scope));
  if (unknown.length > 0) {
    throw new errors.InvalidScope(
      'the requested scope is not one of this client',
      unknown.join(' '),
    );
  }
  if (asked.length === 0 && own.length > 0) params['scope'] = own.join(' ');
}

/** The scopes that a client registered for its own resource servers; none of ours. */
export function ownScopesOf({ svc_resource_scopes: own }: OwnMetadata): string[] {
  return scopeWords(own).filter((scope) => !isOwnScope(scope));
}
