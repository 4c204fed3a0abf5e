import { X509Certificate, hash } from 'node:crypto';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import {
  checkDpopReplay,
  checkDpopRequired,
  checkMtlsCert,
  validateDpop,
} from '../engine/library-patches.js';
import { accessTokenLifetime } from '../engine/lifetimes.js';
import { newGrant } from '../protocol/grant-id.js';
import type { ResourceServerInstance, TokenEndpointGrantContext } from '../protocol/library.js';

/**
 * The thumbprints of the key (RFC 9449 §5) and of the certificate (RFC 8705 §3) that a request
 * proves to possess. The token is bound to them. Each is undefined if the request does not prove
 * it.
 */
export interface Possession {
  readonly jkt: string | undefined;
  readonly x5t: string | undefined;
}

/** The facts about an access token that one of our own grant types is to issue to a user. */
export interface TokenOrder {
  /** The short name of the grant type, for the audit log. */
  readonly grantType: string;
  readonly resourceOwner: ResourceOwner;
  readonly possession: Possession;
  readonly scopes: readonly string[];
  /**
   * The resource server of the token. If it is undefined, the token is opaque and valid at
   * userinfo.
   */
  readonly server: ResourceServerInstance | undefined;
  /**
   * The latest time at which the token may expire, in seconds since 1970; undefined for no limit.
   * In a token exchange it is the expiry of the exchanged token.
   */
  readonly endsBy?: number;
}

/** The fields of a token response (RFC 6749 §5.1). `expiresIn` is in seconds. */
export interface IssuedToken {
  readonly accessToken: string;
  readonly expiresIn: number;
  readonly tokenType: string;
  readonly scope: string | undefined;
}

/**
 * Verifies the DPoP proof or certificate of a token request. A proof is accepted only once.
 *
 * @throws InvalidDpopProof, UseDpopNonce; InvalidGrant for a replayed proof, or if the client's
 *   tokens must be bound and the request proves nothing
 */
export async function verifyPossession(ctx: TokenEndpointGrantContext): Promise<Possession> {
  const { provider, client } = ctx.oidc;
  const dPoP = await validateDpop(provider, ctx);
  checkDpopRequired(provider, ctx, dPoP);
  const certificate = checkMtlsCert(provider, ctx);
  await checkDpopReplay(provider, ctx, dPoP, client.clientId);
  return {
    jkt: dPoP?.thumbprint,
    x5t: certificate === undefined ? undefined : thumbprintOf(certificate),
  };
}

/**
 * The seconds by which the grant of an exchanged token outlives the token. The grant has no other
 * use, and a user may have a limited number of grants.
 */
const GRANT_MARGIN = 60;

/**
 * Issues an access token under a new grant. The grant of an exchanged token ends soon after the
 * token, and any other grant with the session.
 *
 * @throws InvalidGrant if the session or account has ended, or if a scope needs DPoP and the
 *   request has no proof
 * @throws AccessDenied if the account must not get tokens
 */
export async function issueToken(
  ctx: TokenEndpointGrantContext,
  order: TokenOrder,
  clock: Clock = systemClock,
): Promise<IssuedToken> {
  const { provider, client } = ctx.oidc;
  const { clientId } = client;
  const { resourceOwner, possession, server, endsBy } = order;
  const scope = order.scopes.join(' ');
  const lifetime = accessTokenLifetime(
    ctx,
    { clientId, scope, resourceServer: server },
    clock.now(),
  );
  const { expiresIn, ...times } = expiryOf({ now: clock.seconds(), lifetime, endsBy });
  const rest = endsBy === undefined ? undefined : expiresIn + GRANT_MARGIN;
  const grant = newGrant(provider, resourceOwner, clientId, rest);
  if (server) grant.addResourceScope(server.identifier(), scope);
  else grant.addOIDCScope(scope);
  const token = new provider.AccessToken({
    client,
    accountId: resourceOwner.userId,
    grantId: await grant.save(),
    gty: order.grantType,
    scope,
    resourceServer: server,
    jkt: possession.jkt,
    'x5t#S256': possession.x5t,
    expiresIn,
    ...times,
  });
  ctx.oidc.entity('AccessToken', token);
  return {
    accessToken: await token.save(),
    expiresIn: token.expiration,
    tokenType: token.tokenType,
    scope: scope === '' ? undefined : scope,
  };
}

/**
 * Tells the lifetime of a token in seconds, at least 1, and, if its end has a limit, its issue time
 * and its expiry in seconds since 1970. Both are then always set explicitly, because the OAuth
 * library may write the token a second later. It would add the lifetime to that later time, or
 * state an issue time that does not fit the lifetime.
 */
export function expiryOf(of: { now: number; lifetime: number; endsBy: number | undefined }): {
  expiresIn: number;
  iat?: number;
  exp?: number;
} {
  const { now, lifetime, endsBy } = of;
  if (endsBy === undefined) return { expiresIn: lifetime };
  const expiresIn = Math.max(1, Math.min(endsBy - now, lifetime));
  return { expiresIn, iat: now, exp: Math.min(endsBy, now + expiresIn) };
}

function thumbprintOf(certificate: string | X509Certificate): string {
  const { raw } = typeof certificate === 'string' ? new X509Certificate(certificate) : certificate;
  return hash('sha256', raw, 'base64url');
}
