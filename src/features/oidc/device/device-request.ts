import { isIP } from 'node:net';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import type { SessionOrigin } from '#domain/sessions/session.js';
import { epochSeconds } from '../protocol/claims.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { needsConsent } from '../protocol/consent-rules.js';
import type { Client } from '../protocol/library.js';
import { resourceServerOf, type OwnAudiences } from '../protocol/resource-servers.js';
import { CLI_CLIENT_ID, deviceScopes, grantedScopes, scopeWords } from '../protocol/scopes.js';
import { formatUserCode } from '../protocol/user-code.js';
import { displayName } from '#domain/oauth/clients/display-name.js';

/**
 * The parameters of a device authorization request (RFC 8628 §3.1), as the OAuth library stores
 * them.
 */
export interface DeviceParameters {
  readonly scope?: string;
  readonly resource?: string | readonly string[];
}

/** The access that a device gets if its user approves it. */
export interface DeviceGrant {
  readonly scopes: readonly string[];
  /** The scopes at each resource server (RFC 8707). A server without scopes is left out. */
  readonly resources: ReadonlyMap<string, readonly string[]>;
}

/** A device that waits for the approval of a user. */
export interface DeviceRequest {
  readonly id: Buffer;
  readonly userCode: string;
  readonly client: Client & OwnMetadata;
  readonly params: DeviceParameters;
  /** The IP address and the `User-Agent` of the program on the device that asked for the code. */
  readonly device: { readonly ip: string | null; readonly userAgent: string };
  /** The access that the user who typed the code can give the device. */
  readonly grant: DeviceGrant;
}

/** The data of the page on which a user approves a device. */
export interface ApprovalPage {
  readonly userCode: string;
  readonly client: {
    readonly name: string;
    readonly isOurs: boolean;
    readonly isColleagues: boolean;
  };
  /**
   * The IP address of the device. The page shows nothing that the device chose, such as the name of
   * its program.
   */
  readonly address: string | null;
  readonly user: { readonly email: string };
  /**
   * The id of the session for which the page was rendered. The script of the page sends this id
   * with the decision. So an old page that is still open cannot approve for another user who has
   * logged in since.
   */
  readonly sessionId: string;
  readonly scopes: readonly string[];
  readonly resources: readonly string[];
}

/** Builds the approval page of a request. */
export function approvalPage(
  { client, device, grant }: DeviceRequest,
  resourceOwner: ResourceOwner,
  userCode: string,
): ApprovalPage {
  return {
    userCode: formatUserCode(userCode),
    client: {
      name: displayName(client),
      isOurs: client.svc_kind === 'first-party',
      isColleagues: !needsConsent(client, resourceOwner),
    },
    address: device.ip,
    user: { email: resourceOwner.email ?? '' },
    sessionId: resourceOwner.sessionId,
    scopes: grant.scopes,
    resources: [...grant.resources.keys()].map(originOf),
  };
}

/**
 * Returns the origin of a resource server for the page. The rest of its URL is not shown, because
 * the device chose it.
 */
function originOf(resource: string): string {
  return URL.parse(resource)?.origin ?? '';
}

/**
 * Returns the access that a user may give a device. A registered application gets what it
 * requested, except access to our own APIs. Our command-line client `svc-cli` gets only a few
 * scopes, and no token for a resource. The reason is that an attacker may have sent the code to the
 * user.
 */
export function deviceGrant(
  params: DeviceParameters,
  client: Client & OwnMetadata,
  resourceOwner: Pick<ResourceOwner, 'isOrgAdmin' | 'orgId'>,
  own: OwnAudiences,
): DeviceGrant {
  const requested = scopeWords(params.scope);
  if (client.clientId === CLI_CLIENT_ID) {
    return { scopes: deviceScopes(requested), resources: new Map() };
  }
  const resources = [params.resource ?? []].flat().map((resource) => {
    const known = new Set(scopeWords(resourceServerOf(resource, client, own).scope));
    return [resource, requested.filter((scope) => known.has(scope))] as const;
  });
  return {
    scopes: grantedScopes(requested, client, resourceOwner),
    resources: new Map(resources.filter(([, scopes]) => scopes.length > 0)),
  };
}

/** Returns the scope of an approved device code: all scopes for which the device can get tokens. */
export function scopeOfCode({ scopes, resources }: DeviceGrant): string {
  return [...new Set([...scopes, ...[...resources.values()].flat()])].join(' ');
}

/**
 * Returns the data that are stored for an approved device code, in the form that the OAuth library
 * reads.
 */
export function approvedPayload(
  grantId: string,
  resourceOwner: ResourceOwner,
  { params, grant }: DeviceRequest,
): object {
  const scope = scopeOfCode(grant);
  const { resource } = params;
  return {
    accountId: resourceOwner.userId,
    grantId,
    authTime: epochSeconds(resourceOwner.authTime),
    ...(resourceOwner.acr !== null && { acr: resourceOwner.acr }),
    ...(resourceOwner.amr.length > 0 && { amr: resourceOwner.amr }),
    ...(scope !== '' && { scope }),
    ...(resource !== undefined && grant.resources.size > 0 && { resource }),
  };
}

/**
 * Returns the data that are stored for the grant of an approved device, in the form that the OAuth
 * library reads.
 */
export function grantPayload(
  { client: { clientId }, grant: { scopes, resources } }: DeviceRequest,
  { userId: accountId }: ResourceOwner,
  { iat, exp }: { readonly iat: number; readonly exp: number },
): Record<string, unknown> {
  const openid = { scope: scopes.join(' ') };
  const scopesAt = [...resources].map(([resource, known]) => [resource, known.join(' ')] as const);
  return {
    kind: 'Grant',
    accountId,
    clientId,
    iat,
    exp,
    ...(scopes.length > 0 && { openid }),
    ...(resources.size > 0 && { resources: Object.fromEntries(scopesAt) }),
  };
}

/**
 * Returns the IP address and the `User-Agent` that are recorded for a new session of svc-cli. Both
 * are those of the device that asked for the code, and not those of the browser in which the user
 * approves it. An IPv6 address with a zone is left out, because the type `inet` of PostgreSQL has
 * no zones.
 */
export function originOfDevice({ ip, userAgent }: DeviceRequest['device']): SessionOrigin {
  const isAddress = ip !== null && isIP(ip) > 0 && !ip.includes('%');
  return { ip: isAddress ? ip : undefined, userAgent: userAgent.slice(0, 512) || undefined };
}
