import type { Config } from '#platform/config/config.js';
import type { OwnMetadata } from './client-metadata.js';
import { errors, type Client, type KoaContextWithOIDC, type ResourceServer } from './library.js';
import { isForClientItself, ownResourceOf, ownScopesOf } from './requested-scopes.js';
import { OIDC_SCOPES } from './scopes.js';

/**
 * The longest lifetime of a JWT access token in seconds. A resource server that does not introspect
 * the token notices the deactivation of its user only when the token expires.
 */
export const JWT_LIFETIME = 300;

/**
 * The most resources of one request. Each costs a query of the database, and a request object of a
 * client that registered itself has room for thousands.
 */
const MOST_RESOURCES = 20;

/**
 * The most characters of one resource. The resource is stored with each grant, and is the audience
 * of each token.
 */
const LONGEST_RESOURCE = 2_048;

/**
 * Refuses a request that names too many resources (RFC 8707 §2), or one that is too long, before
 * the first is looked up.
 *
 * @throws InvalidTarget
 */
export function assertResourcesWithinLimits({ oidc: { params } }: KoaContextWithOIDC): void {
  const named: unknown[] = [params?.['resource'] ?? []].flat();
  if (named.length > MOST_RESOURCES) {
    throw new errors.InvalidTarget(`a request may name at most ${MOST_RESOURCES} resources`);
  }
  if (named.some((resource) => String(resource).length > LONGEST_RESOURCE)) {
    throw new errors.InvalidTarget(`a resource may have at most ${LONGEST_RESOURCE} characters`);
  }
}

/**
 * The audiences of this service itself and of its tokens for AWS. No client may name them as a
 * resource.
 */
export interface OwnAudiences {
  readonly baseUrl: string;
  readonly awsAudience: string;
  /** The port of the listener that requests client certificates. */
  readonly mtlsPort?: number;
}

/** Returns the audiences of this service itself and of AWS from the configuration. */
export function ownAudiences({ http, aws }: Config): OwnAudiences {
  return { baseUrl: http.baseUrl, awsAudience: aws.audience, mtlsPort: http.mtls.port };
}

/**
 * Returns true if a URL is at an origin of this service: the public origin, or that of its
 * mutual-TLS listener.
 */
export function isOwnOrigin(url: URL, { baseUrl, mtlsPort }: OwnAudiences): boolean {
  const own = new URL(baseUrl);
  const host = url.hostname.replace(/\.+$/, '');
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  const ownPort = own.port || (own.protocol === 'https:' ? '443' : '80');
  return host === own.hostname && (port === ownPort || port === String(mtlsPort));
}

/**
 * Returns the resource server of a resource indicator (RFC 8707 §2), with the scopes that the
 * client registered. Any https URL, and any http URL with a loopback host, is accepted, with three
 * exceptions. A URL of this server is refused, because the tokens for our own APIs are issued in
 * another way. The audience of tokens for AWS is refused, because applications must not get such
 * tokens. A URL with a user name or a password is refused.
 *
 * @throws InvalidTarget for any other resource
 */
export function resourceServerOf(
  resource: string,
  client: Client & OwnMetadata,
  own: OwnAudiences,
): ResourceServer {
  const url = URL.parse(resource);
  const isAddress = url !== null && (url.protocol === 'https:' || isLoopback(url));
  const isOwn = url !== null && (isOwnOrigin(url, own) || resource === own.awsAudience);
  if (!isAddress || isOwn || url.username !== '' || url.password !== '') {
    throw new errors.InvalidTarget('the resource must be an https URL of another service');
  }
  const scope = [...OIDC_SCOPES, ...ownScopesOf(client)].join(' ');
  return { ...clusterServer(resource), scope };
}

/**
 * Returns the resource server for a Kubernetes cluster. Its tokens are JWTs, and can have only the
 * scopes of OpenID Connect.
 */
export function clusterServer(resource: string): ResourceServer {
  return {
    scope: OIDC_SCOPES.join(' '),
    audience: resource,
    accessTokenFormat: 'jwt',
    accessTokenTTL: JWT_LIFETIME,
    jwt: { sign: { alg: 'ES256' } },
  };
}

/**
 * Returns true for an http URL with a loopback host, at which a resource server under development
 * runs.
 */
function isLoopback({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
}

/**
 * Makes the function that the OAuth library calls to learn about a resource server. If a request
 * for client credentials names no resource, the token is for the client itself. This token is
 * opaque, because the client introspects it.
 */
export function resourceServerInfo(own: OwnAudiences) {
  return (ctx: KoaContextWithOIDC, resource: string, client: Client & OwnMetadata) =>
    isForClientItself(ctx) && resource === ownResourceOf(client)
      ? { scope: [...OIDC_SCOPES, ...ownScopesOf(client)].join(' '), audience: client.clientId }
      : resourceServerOf(resource, client, own);
}
