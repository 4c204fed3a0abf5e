import type { Client, KoaContextWithOIDC } from 'oidc-provider';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import { ADMIN_SCOPE, CLI_CLIENT_ID } from '#domain/sessions/access-token.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { exchangeOf } from '../request/request-context.js';
import { JWT_LIFETIME } from '../protocol/resource-servers.js';
import { scopeWords } from '../protocol/scopes.js';

/** In seconds. Codes live as FAPI 2.0 asks: no more than a minute (§5.3.2.1). */
export const LIFETIMES = {
  authorizationCode: 60,
  clientCredentials: 300,
  idToken: 300,
  interaction: 600,
  registrationAccessToken: 365 * 86_400,
} as const;

/** The longest life of an opaque token of any client but ours, in seconds. */
const LONGEST = 3600;

/** The life of a token of any client that administers an organization, in seconds. */
const LONGEST_OF_ADMIN = 900;

/**
 * How long an ID token is good for, in seconds: as its client registered, no longer than the session. An offline verifier
 * learns of a de-provisioning only when it ends.
 */
export function idTokenLifetime(
  ctx: KoaContextWithOIDC,
  _token: unknown,
  client: Client & OwnMetadata,
): number {
  const { holder } = exchangeOf(ctx);
  const wanted = client.svc_id_token_lifetime ?? LIFETIMES.idToken;
  return holder ? Math.min(secondsLeft(holder), wanted) : LIFETIMES.idToken;
}

/** How long the session of a person lasts from now, in whole seconds. */
function secondsLeft({ expiresAt }: ResourceOwner): number {
  return Math.max(1, Math.floor((expiresAt.getTime() - Date.now()) / 1000));
}

/**
 * How long an access token lives, in seconds: never longer than its session. Opaque ones of our own command-line client have
 * the whole rest of it, others an hour at most; JWTs are short, and so are tokens with `svc:admin`.
 */
export function accessTokenLifetime(
  ctx: KoaContextWithOIDC,
  token: {
    readonly clientId?: string | undefined;
    readonly resourceServer?: unknown;
    readonly scope?: string | undefined;
  },
): number {
  const { holder } = exchangeOf(ctx);
  if (!holder) throw new Error('a token is issued to nobody');
  const rest = secondsLeft(holder);
  if (token.resourceServer !== undefined) return Math.min(rest, JWT_LIFETIME);
  if (scopeWords(token.scope).includes(ADMIN_SCOPE)) return Math.min(rest, LONGEST_OF_ADMIN);
  return token.clientId === CLI_CLIENT_ID ? rest : Math.min(rest, LONGEST);
}
