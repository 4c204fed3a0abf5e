import type { RecordedConsent } from '#domain/oauth/clients/dynamic-clients.repository.js';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import type { OwnMetadata } from './client-metadata.js';
import type { Client } from './library.js';

/**
 * The access that a request asks for and that needs consent: scopes and claims of OpenID Connect,
 * and the scopes at each resource server.
 */
export interface RequestedAccess {
  readonly scopes: readonly string[];
  readonly claims: readonly string[];
  readonly resources: ReadonlyMap<string, readonly string[]>;
}

/**
 * Returns true if a client needs the consent of a user. A client that registered itself always
 * needs it. Any other client needs it if it belongs to another organization or user. No consent is
 * asked for our own clients, and none in certification test mode, in which the user is synthetic.
 */
export function needsConsent(client: Client & OwnMetadata, resourceOwner: ResourceOwner): boolean {
  if (client.svc_kind === 'first-party' || !resourceOwner.hardwareVerified) return false;
  if (client.svc_kind === 'dynamic') return true;
  return client.svc_org === undefined
    ? client.svc_owner !== resourceOwner.userId
    : client.svc_org !== resourceOwner.orgId;
}

/**
 * Returns true if a user must consent before the first sign-in to a colleague's application. That
 * is the case if no admin has approved the application for the redirect URI of the request. Without
 * the consent page, a link would sign the user in without notice, and the colleague would learn who
 * opened the link.
 *
 * @param redirectUri undefined for a grant without a redirect; any approval covers such a grant
 */
export function needsApproval(
  client: Client & OwnMetadata,
  resourceOwner: ResourceOwner,
  redirectUri: string | undefined,
): boolean {
  const { svc_kind: kind, svc_owner: owner, svc_approved_uris: approved } = client;
  if (kind !== 'application' || !resourceOwner.hardwareVerified) return false;
  if (owner === resourceOwner.userId) return false;
  return approved === undefined || !isCoveredUri(client, approved, redirectUri);
}

/**
 * Returns true if the consent that a user gave to an application covers the scopes, the claims and
 * the redirect URI of a request.
 */
export function coversRequest(
  client: Client,
  { scopes, claims, redirectUris }: RecordedConsent,
  requested: Omit<RequestedAccess, 'resources'>,
  redirectUri: string | undefined,
): boolean {
  return (
    requested.scopes.every((scope) => scopes.includes(scope)) &&
    requested.claims.every((claim) => claims.includes(claim)) &&
    isCoveredUri(client, redirectUris, redirectUri)
  );
}

/**
 * Returns true if the redirect URI of a request is in a list, or if the request has none. The list
 * has the URIs for which an admin approved the application, or to which the user consented. The
 * port of a native client's loopback URI is ignored, because the client chooses it.
 */
function isCoveredUri(
  { applicationType }: Client,
  uris: readonly string[],
  redirectUri: string | undefined,
): boolean {
  if (redirectUri === undefined || uris.includes(redirectUri)) return true;
  const isNative = applicationType === 'native';
  return isNative && uris.map(withoutPort).includes(withoutPort(redirectUri));
}

/** The hosts of redirect URIs in which a native client may choose the port (RFC 8252 §7.3). */
const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Removes the port of an http URL with a loopback host. Any other URL is returned as it is. */
function withoutPort(address: string): string {
  const url = URL.parse(address);
  if (url?.protocol !== 'http:' || !LOOPBACK.has(url.hostname)) return address;
  url.port = '';
  return url.href;
}

/**
 * Returns true if an application of a colleague needs the user's consent to act at a resource
 * server. Nothing proves that the server belongs to the application, or that its operator knows the
 * application.
 */
export function needsConsentForResources(
  client: Client & OwnMetadata,
  resourceOwner: ResourceOwner,
  { resources }: RequestedAccess,
): boolean {
  return resources.size > 0 && mustAskForResources(client, resourceOwner);
}

/**
 * Returns true if a user must consent before a client gets a token for a resource: a token acts for
 * the user at another service. The user's own applications and those of the service are trusted.
 */
export function mustAskForResources(
  client: Client & OwnMetadata,
  { userId, hardwareVerified }: ResourceOwner,
): boolean {
  return hardwareVerified && client.svc_kind !== 'first-party' && client.svc_owner !== userId;
}

/** The members of a stored grant that show what a user consented to. */
export interface ConsentedGrant {
  readonly openid?: { readonly scope?: string; readonly claims?: readonly string[] };
  readonly resources?: Readonly<Record<string, string>>;
  /** The redirect URI to which the code of the grant was sent; undefined without a redirect. */
  readonly svc_redirect_uri?: string;
}

/**
 * Returns true if an earlier grant of the same session sent its code to the redirect URI of a
 * request. The consent page names the host of one redirect URI, so the user has not consented to
 * the other URIs that the client registered.
 */
export function isKnownUri(
  client: Client,
  grants: readonly ConsentedGrant[],
  redirectUri: string | undefined,
): boolean {
  const known = grants.flatMap(({ svc_redirect_uri: uri }) => uri ?? []);
  return isCoveredUri(client, known, redirectUri);
}

/**
 * Returns true if earlier grants of the same session cover all the access that a request asks for.
 */
export function isCovered(requested: RequestedAccess, grants: readonly ConsentedGrant[]): boolean {
  const scopes = new Set(grants.flatMap(({ openid }) => openid?.scope?.split(' ') ?? []));
  const claims = new Set(grants.flatMap(({ openid }) => openid?.claims ?? []));
  const coversResource = ([resource, wanted]: readonly [string, readonly string[]]) => {
    const granted = new Set(
      grants.flatMap(({ resources }) => resources?.[resource]?.split(' ') ?? []),
    );
    return wanted.every((scope) => granted.has(scope));
  };
  return (
    grants.length > 0 &&
    requested.scopes.every((scope) => scopes.has(scope)) &&
    requested.claims.every((claim) => claims.has(claim)) &&
    [...requested.resources].every(coversResource)
  );
}
