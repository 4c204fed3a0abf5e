import type { Config } from '#platform/config/config.js';
import { noteAuthenticatedClient } from '#platform/http/access/anonymous-row.js';
import { noteCaller } from '#platform/http/access/caller.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import type { Client, KoaContextWithOIDC } from '../protocol/library.js';
import { correctErrorCode } from './library-patches.js';

/**
 * The path of the metadata of our protected resources (RFC 9728 §3), which a refused client needs
 * to find the authorization server.
 */
const RESOURCE_METADATA_PATH = '/.well-known/oauth-protected-resource';

/**
 * Matches the member of a registration's response that is a URL of this server (RFC 7592 §3). All
 * other URLs belong to the client, and are not changed.
 */
const REGISTRATION_ADDRESS = /^registration_client_uri$/;

/**
 * The endpoints, by the OAuth library's names, with responses that contain URLs of this server.
 * Each expression matches the names of the members that are such URLs.
 */
const OWN_ADDRESSES: Readonly<Record<string, RegExp>> = {
  discovery: /^jwks_uri$|_endpoint$/,
  device_authorization: /^verification_uri(?:_complete)?$/,
  registration: REGISTRATION_ADDRESS,
  client: REGISTRATION_ADDRESS,
  client_update: REGISTRATION_ADDRESS,
};

/** The endpoints at which a client authenticates with a form. */
const WITH_CLIENT_AUTHENTICATION: ReadonlySet<string> = new Set([
  'token',
  'introspection',
  'revocation',
  'pushed_authorization_request',
  'device_authorization',
]);

/**
 * Corrects those parts of the OAuth library's responses that several endpoints share. What only one
 * endpoint needs is corrected in its controller.
 */
export function correctResponse(ctx: KoaContextWithOIDC, http: Config['http']): void {
  noteOAuthCaller(ctx);
  const route = routeOf(ctx) ?? '';
  const own = OWN_ADDRESSES[route];
  if (own) publishAddresses(ctx.body as Record<string, unknown>, own, http);
  if (WITH_CLIENT_AUTHENTICATION.has(route)) {
    noteClientAuthentication(ctx);
    correctErrorCode(ctx);
    addAuthenticationScheme(ctx);
  }
}

/**
 * Returns the OAuth library's name of the endpoint; undefined for a request that the library does
 * not route.
 */
export function routeOf(ctx: KoaContextWithOIDC): string | undefined {
  return (ctx.oidc as KoaContextWithOIDC['oidc'] | undefined)?.route;
}

/** Records the client and the user of an OAuth request for its line in the log. */
function noteOAuthCaller(ctx: KoaContextWithOIDC): void {
  const oidc = ctx.oidc as KoaContextWithOIDC['oidc'] | undefined;
  const clientId = oidc?.client?.clientId;
  const userId = oidc?.account?.accountId;
  if (clientId !== undefined || userId !== undefined) noteCaller(ctx.req, { clientId, userId });
}

/**
 * Records that a client has authenticated. The database rows that its request inserts then do not
 * count as anonymous, for which each network has a limit. A client that registered itself does not
 * count as authenticated here, because any program can register any number of clients.
 */
function noteClientAuthentication(ctx: KoaContextWithOIDC): void {
  const client: (Client & OwnMetadata) | undefined = ctx.oidc.client;
  if (client && client.clientAuthMethod !== 'none' && client.svc_kind !== 'dynamic') {
    noteAuthenticatedClient(ctx.req);
  }
}

/**
 * Replaces URLs of the mutual-TLS listener in a response by the published ones, which users and
 * other clients can reach.
 *
 * @param own matches the names of the members that are URLs of this server
 */
function publishAddresses(
  body: Record<string, unknown>,
  own: RegExp,
  { mtls, baseUrl }: Config['http'],
): void {
  const listener = `https://${new URL(baseUrl).hostname}:${mtls.port}/`;
  for (const [name, value] of Object.entries(body)) {
    if (own.test(name) && typeof value === 'string' && value.startsWith(listener)) {
      body[name] = `${baseUrl}/${value.slice(listener.length)}`;
    }
  }
}

/**
 * Adds the header that names a scheme by which a rejected client may authenticate (RFC 6749 §5.2,
 * RFC 9110 §15.5.2).
 */
function addAuthenticationScheme(ctx: KoaContextWithOIDC): void {
  if (ctx.status !== 401 || ctx.response.headers['www-authenticate'] !== undefined) return;
  const { error = 'invalid_client' } = ctx.body as { error?: string };
  ctx.set('WWW-Authenticate', `Basic realm="${ctx.oidc.issuer}", error="${error}"`);
}

/**
 * Keeps only the `WWW-Authenticate` challenge that fits the scheme of the request (Bearer or DPoP),
 * because the OAuth library sends one for each scheme. It adds the URL of the resource's metadata
 * (RFC 9728 §5.1).
 */
export function keepOneChallenge(ctx: KoaContextWithOIDC, baseUrl: string): void {
  const challenges = [ctx.response.headers['www-authenticate'] ?? []].flat().map(String);
  if (challenges.length === 0) return;
  const hasProof = /^DPoP /i.test(ctx.get('authorization')) || ctx.get('dpop') !== '';
  const scheme = hasProof ? 'DPoP ' : 'Bearer ';
  const challenge = challenges.find((one) => one.startsWith(scheme)) ?? challenges[0];
  const metadata = `resource_metadata="${baseUrl}${RESOURCE_METADATA_PATH}"`;
  ctx.set('WWW-Authenticate', `${challenge}, ${metadata}`);
}
