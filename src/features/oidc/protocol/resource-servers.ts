import { errors, type Client, type KoaContextWithOIDC, type ResourceServer } from 'oidc-provider';
import type { OwnMetadata } from './client-metadata.js';
import { isForClientItself, ownResourceOf, ownScopesOf } from './requested-scopes.js';
import { OIDC_SCOPES } from './scopes.js';

/** Seconds a JWT is good for: where nobody asks us about it, that is how late a de-provisioning arrives. */
export const JWT_LIFETIME = 300;

/**
 * The resource server of a resource indicator (RFC 8707 §2): any address but our own, whose APIs take no token of another
 * client. What may be asked for there is what the client registered.
 *
 * @throws InvalidTarget
 */
export function resourceServerOf(
  resource: string,
  client: Client & OwnMetadata,
  baseUrl: string,
): ResourceServer {
  const url = URL.parse(resource);
  const isAddress = url !== null && (url.protocol === 'https:' || isLoopback(url));
  if (!isAddress || url.origin === baseUrl || url.username !== '' || url.password !== '') {
    throw new errors.InvalidTarget('the resource must be an https address of another service');
  }
  return {
    scope: [...OIDC_SCOPES, ...ownScopesOf(client)].join(' '),
    audience: resource,
    accessTokenFormat: 'jwt',
    accessTokenTTL: JWT_LIFETIME,
    jwt: { sign: { alg: 'ES256' } },
  };
}

/** Our own are refused above: a resource server under development has an address like this. */
function isLoopback({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
}

/**
 * Fits the `getResourceServerInfo` hook. A token of the client's own that is for no other service is for the client itself: opaque,
 * since the client asks us about it.
 */
export function resourceServerInfo(baseUrl: string) {
  return (ctx: KoaContextWithOIDC, resource: string, client: Client & OwnMetadata) =>
    isForClientItself(ctx) && resource === ownResourceOf(client)
      ? { scope: [...OIDC_SCOPES, ...ownScopesOf(client)].join(' '), audience: client.clientId }
      : resourceServerOf(resource, client, baseUrl);
}
