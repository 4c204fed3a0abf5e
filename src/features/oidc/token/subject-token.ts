import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import type { AccessTokens } from '../engine/access-tokens.service.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { coversRequest, needsApproval, needsConsent } from '../protocol/consent-rules.js';
import {
  errors,
  type AccessToken,
  type Client,
  type TokenEndpointGrantContext,
} from '../protocol/library.js';
import { OIDC_SCOPES, isOwnScope, scopeWords } from '../protocol/scopes.js';
import type { ResourceOwners } from '../request/resource-owners.service.js';
import type { Possession } from './issue-token.js';

const OPENID_CONNECT: ReadonlySet<string> = new Set(OIDC_SCOPES);

/** An access token that a client exchanges for another access token (RFC 8693). */
export interface SubjectToken {
  readonly resourceOwner: ResourceOwner;
  /**
   * The id of the token's grant in the OAuth library's records. The new token ends with this grant.
   */
  readonly grantId: string;
  readonly clientId: string;
  /** The time at which the token expires, in seconds since 1970. */
  readonly expiresAt: number;
  /** The resource server of the token; undefined for an opaque token. */
  readonly audience: string | undefined;
  /**
   * The scopes of the token without those of our own APIs, which only our command-line client gets.
   */
  readonly scopes: readonly string[];
  /** The scopes of the token for our own APIs. */
  readonly ownScopes: readonly string[];
  /** The thumbprint of the DPoP key to which the token is bound; undefined without a binding. */
  readonly jkt: string | undefined;
  /** Returns the scopes that the grant of the token contains for a resource server. */
  readonly grantedAt: (resource: string) => readonly string[];
}

/** The services that a token exchange uses. */
export interface ExchangeServices {
  readonly resourceOwners: ResourceOwners;
  readonly accessTokens: AccessTokens;
}

/**
 * Finds the subject token of an exchange, which is the token to be exchanged (RFC 8693 §2.1). It
 * must be a valid access token of a user, issued to this client or to another application of the
 * same user or organization. Its user is stored in the request context.
 *
 * @throws InvalidRequest, the same for every token that cannot be exchanged (RFC 8693 §2.2.2)
 */
export async function findSubjectToken(
  ctx: TokenEndpointGrantContext,
  value: string,
  possession: Possession,
  services: ExchangeServices,
): Promise<SubjectToken> {
  const { provider } = ctx.oidc;
  const id = await services.accessTokens.recordedIdOf(value);
  const token = id === undefined ? undefined : await provider.AccessToken.find(id);
  const grant = await provider.Grant.find(token?.grantId ?? '');
  if (!token?.isValid || !grant || !isBoundTo(token, possession)) throw invalidSubjectToken();
  const resourceOwner = await services.resourceOwners.ofGrant(ctx, token.grantId);
  const isOwned = resourceOwner?.userId === token.accountId;
  if (!isOwned || !(await mayExchange(ctx, token, resourceOwner, services))) {
    throw invalidSubjectToken();
  }
  const words = scopeWords(token.scope);
  return {
    resourceOwner,
    grantId: token.grantId,
    clientId: token.clientId ?? '',
    expiresAt: token.exp ?? 0,
    audience: token.aud === undefined ? undefined : String(token.aud),
    scopes: words.filter((scope) => !isOwnScope(scope)),
    ownScopes: words.filter(isOwnScope),
    jkt: token.jkt,
    grantedAt: (resource) => scopeWords(grant.getResourceScope(resource)),
  };
}

/**
 * Returns true if a client may exchange a token. If the user would first have to consent, it
 * returns false, because the token endpoint cannot ask the user.
 */
async function mayExchange(
  ctx: TokenEndpointGrantContext,
  token: AccessToken,
  resourceOwner: ResourceOwner,
  { accessTokens, resourceOwners }: ExchangeServices,
): Promise<boolean> {
  const { client } = ctx.oidc;
  if (token.clientId === client.clientId) return true;
  return (
    !(await lacksConsent(ctx, resourceOwner, scopeWords(token.scope), resourceOwners)) &&
    accessTokens.mayIntrospect(client, token)
  );
}

/**
 * Returns true if a client lacks a consent of the user that it needs. The caller refuses such a
 * request, because the token endpoint cannot ask the user. A consent is needed if the client
 * belongs to another organization, or if no admin has approved it.
 */
export async function lacksConsent(
  ctx: TokenEndpointGrantContext,
  resourceOwner: ResourceOwner,
  scopes: readonly string[],
  resourceOwners: ResourceOwners,
): Promise<boolean> {
  const client: Client & OwnMetadata = ctx.oidc.client;
  if (needsConsent(client, resourceOwner)) return true;
  if (!needsApproval(client, resourceOwner, undefined)) return false;
  const consent = await resourceOwners.consentOf(ctx, resourceOwner, client.clientId);
  const requested = { scopes: scopes.filter((scope) => OPENID_CONNECT.has(scope)), claims: [] };
  return !consent || !coversRequest(client, consent, requested, undefined);
}

/**
 * Returns true if a request proves the key and the certificate to which a token is bound. Without
 * this check, a stolen token alone could be exchanged.
 */
function isBoundTo(token: AccessToken, { jkt, x5t }: Possession): boolean {
  const { jkt: key, 'x5t#S256': certificate } = token;
  return (key === undefined || key === jkt) && (certificate === undefined || certificate === x5t);
}

/**
 * Makes the error for a token that cannot be exchanged. It is the same for every reason, so that a
 * client learns nothing about tokens of others.
 */
export function invalidSubjectToken(): errors.InvalidRequest {
  return new errors.InvalidRequest('the subject token is invalid, or not one for this client');
}
