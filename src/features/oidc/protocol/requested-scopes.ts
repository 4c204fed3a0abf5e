import type { OwnMetadata } from './client-metadata.js';
import type { RequestedAccess } from './consent-rules.js';
import { errors, type Client, type KoaContextWithOIDC } from './library.js';
import { OIDC_SCOPES, isOwnScope, scopeWords } from './scopes.js';

/**
 * The scopes of OpenID Connect Core §5.4 and §11. A client may request all of them, although some
 * of them give no access at this server.
 */
const STANDARD: ReadonlySet<string> = new Set([
  ...OIDC_SCOPES,
  'address',
  'phone',
  'offline_access',
]);

/** The OAuth library's name of the endpoint of pushed requests (RFC 9126). */
const PUSHED = 'pushed_authorization_request';
/** The endpoints, by the OAuth library's names, whose requests wait for a decision of the user. */
const ROUTES: ReadonlySet<string> = new Set([PUSHED, 'authorization', 'device_authorization']);

/**
 * Checks the scopes of an authorization request (RFC 6749 §3.3) before the user logs in. A pushed
 * request with an unknown scope fails (RFC 9126 §2.3). In other requests the OAuth library ignores
 * an unknown scope (OpenID Connect Core §3.1.2.1), unless all scopes are unknown.
 *
 * @throws InvalidScope for an unknown scope in a pushed request, and if the client may have none of
 *   the scopes
 */
export function checkRequestedScopes({ oidc }: KoaContextWithOIDC): void {
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

/**
 * Returns the resource (RFC 8707) of the tokens that a client gets for itself by client
 * credentials. It is a URN and no URL, because no other server reads these tokens: only the client
 * and other applications of its owner introspect them.
 */
export function ownResourceOf({ clientId }: Pick<Client, 'clientId'>): string {
  return `urn:svc:client:${encodeURIComponent(clientId)}`;
}

/**
 * Returns true if a client requests a token for itself and not for a user, by client credentials
 * (RFC 6749 §4.4).
 */
export function isForClientItself({ oidc }: KoaContextWithOIDC): boolean {
  return oidc.route === 'token' && oidc.params?.['grant_type'] === 'client_credentials';
}

/**
 * Completes the scopes of a client-credentials request that names no resource (RFC 6749 §3.3,
 * §4.4.2). A request without a scope gets the scopes that the application registered. A requested
 * scope must be one of these or of OpenID Connect.
 *
 * @throws InvalidScope for any other scope
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

/**
 * Returns the scopes that a client registered for its own resource servers, without the scopes of
 * this service.
 */
export function ownScopesOf({ svc_resource_scopes: own }: OwnMetadata): string[] {
  return scopeWords(own).filter((scope) => !isOwnScope(scope));
}

/**
 * Returns the access that an authorization request asks for: the scopes and claims of OpenID
 * Connect, and the scopes at each resource server.
 */
export function requestedAccess({ oidc }: KoaContextWithOIDC): RequestedAccess {
  const { requestParamOIDCScopes, requestParamClaims, requestParamScopes } = oidc;
  const resources = Object.entries(oidc.resourceServers ?? {}).map(([resource, server]) => {
    const known = new Set(server.scope?.split(' '));
    return [resource, [...requestParamScopes].filter((scope) => known.has(scope))] as const;
  });
  return {
    scopes: [...requestParamOIDCScopes],
    claims: [...requestParamClaims],
    resources: new Map(resources.filter(([, scopes]) => scopes.length > 0)),
  };
}
