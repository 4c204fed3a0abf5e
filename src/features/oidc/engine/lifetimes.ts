import { DEVICE_GRANT } from '#domain/oauth/applications/grant-types.js';
import { ID_TOKEN_LIFETIME } from '#domain/oauth/applications/registration.js';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import { CLI_CLIENT_ID, isBoundScope } from '#domain/sessions/access-token.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import type { Client, KoaContextWithOIDC } from '../protocol/library.js';
import { JWT_LIFETIME } from '../protocol/resource-servers.js';
import { scopeWords } from '../protocol/scopes.js';
import { requestContextOf } from '../request/request-context.js';

/**
 * The lifetimes in seconds that are the same in every deployment. An authorization code lives for a
 * minute, the longest time that FAPI 2.0 allows (§5.3.2.1). The lifetime of a device code is
 * `SVC_DEVICE_CODE_EXPIRES` in `platform/config/table/settings.ts`.
 */
export const LIFETIMES = {
  authorizationCode: 60,
  clientCredentials: 300,
  idToken: ID_TOKEN_LIFETIME,
  interaction: 600,
  registrationAccessToken: 365 * 86_400,
} as const;

/**
 * The longest lifetime in seconds of an opaque token that was issued to a device, or to any client
 * but our command-line client `svc-cli`.
 */
const LONGEST = 3600;

/**
 * The longest lifetime in seconds of a token that administers an organization or applications. It
 * is short, because it is also the longest time for which a stolen token can be used.
 */
const LONGEST_OF_BOUND = 900;

/**
 * Returns the lifetime of an ID token in seconds: the value that its client registered, but at most
 * the rest of the session. The lifetime is short, because a verifier that does not ask this server
 * accepts the token until it expires, even if the user was deactivated.
 */
export function idTokenLifetime(
  ctx: KoaContextWithOIDC,
  client: Client & OwnMetadata,
  now: Date,
): number {
  const { resourceOwner } = requestContextOf(ctx);
  const wanted = client.svc_id_token_lifetime ?? LIFETIMES.idToken;
  return resourceOwner ? Math.min(secondsLeft(resourceOwner, now), wanted) : LIFETIMES.idToken;
}

/** Returns the remaining time of a user's session in whole seconds, at least 1. */
function secondsLeft({ expiresAt }: ResourceOwner, now: Date): number {
  return Math.max(1, Math.floor((expiresAt.getTime() - now.getTime()) / 1000));
}

/** An access token that is about to be issued. */
interface NewToken {
  readonly clientId?: string | undefined;
  readonly resourceServer?: unknown;
  readonly scope?: string | undefined;
}

/**
 * Returns the lifetime of an access token in seconds, never longer than its session. JWTs and
 * tokens with `svc:admin` or `svc:applications` live for minutes, and any other token for at most
 * an hour. Only a token of our command-line client `svc-cli` lives for the rest of the session,
 * unless it comes from the device grant (RFC 8628).
 */
export function accessTokenLifetime(ctx: KoaContextWithOIDC, token: NewToken, now: Date): number {
  const { resourceOwner } = requestContextOf(ctx);
  if (!resourceOwner) throw new Error('a token is issued without a user');
  const isOfDevice = ctx.oidc?.params?.['grant_type'] === DEVICE_GRANT;
  const left = secondsLeft(resourceOwner, now);
  const rest = isOfDevice ? Math.min(left, LONGEST) : left;
  if (token.resourceServer !== undefined) return Math.min(rest, JWT_LIFETIME);
  if (scopeWords(token.scope).some(isBoundScope)) return Math.min(rest, LONGEST_OF_BOUND);
  return token.clientId === CLI_CLIENT_ID ? rest : Math.min(rest, LONGEST);
}
