import type { KoaContextWithOIDC } from 'oidc-provider';
import { ADMIN_SCOPE, CLI_CLIENT_ID } from '#domain/sessions/access-token.js';
import { exchangeOf } from './exchange.js';
import { JWT_LIFETIME } from '#oidc/tokens/resource-servers.js';
import { scopeWords } from '#oidc/tokens/scopes.js';

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
  const rest = Math.max(1, Math.floor((holder.expiresAt.getTime() - Date.now()) / 1000));
  if (token.resourceServer !== undefined) return Math.min(rest, JWT_LIFETIME);
  if (scopeWords(token.scope).includes(ADMIN_SCOPE)) return Math.min(rest, LONGEST_OF_ADMIN);
  return token.clientId === CLI_CLIENT_ID ? rest : Math.min(rest, LONGEST);
}
