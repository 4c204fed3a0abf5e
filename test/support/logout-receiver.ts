import type { IncomingMessage } from 'node:http';
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet, type JWTPayload } from 'jose';
import { startToldServer, type ToldServer } from './told-server.js';

/** The values that a relying party (an application) expects in a logout token. */
export interface RelyingParty {
  readonly issuer: string;
  readonly clientId: string;
  readonly algorithm: 'ES256' | 'RS256';
  readonly jwks: JSONWebKeySet;
}

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/**
 * Verifies a logout token by the rules of OpenID Connect Back-Channel Logout §2.6. It uses the
 * library `jose`, and no code of the service.
 *
 * @param seen the ids (`jti`) of earlier tokens, to which this token's id is added
 * @throws Error if a relying party must refuse the token
 */
export async function verifyLogoutToken(
  token: string,
  { issuer, clientId, algorithm, jwks }: RelyingParty,
  seen: Set<string> = new Set(),
): Promise<JWTPayload> {
  const { payload } = await jwtVerify(token, createLocalJWKSet(jwks), {
    issuer,
    audience: clientId,
    algorithms: [algorithm],
    typ: 'logout+jwt',
    requiredClaims: ['iat', 'exp', 'jti', 'events'],
    maxTokenAge: '120 s',
  });
  if (payload.sub === undefined && payload['sid'] === undefined)
    throw new Error('neither sub nor sid');
  const events = payload['events'] as Record<string, unknown> | undefined;
  const event = events?.[EVENT];
  if (typeof event !== 'object' || event === null || Array.isArray(event)) {
    throw new Error('not the event of a logout');
  }
  if ('nonce' in payload) throw new Error('a nonce');
  const { jti = '' } = payload;
  if (jti === '' || seen.has(jti)) throw new Error('no id of its own');
  seen.add(jti);
  return payload;
}

/** A back-channel logout request that a receiver got. */
export interface ReceivedLogout {
  readonly token: string;
  readonly contentType: string | undefined;
  readonly method: string | undefined;
}

/** A server of an application that receives logout tokens, and records the requests. */
export type LogoutReceiver = ToldServer<ReceivedLogout>;

/** Starts a receiver on loopback, which answers 200 until a test changes `answer`. */
export function startLogoutReceiver(): Promise<LogoutReceiver> {
  const read = (body: string, { method, headers }: IncomingMessage): ReceivedLogout => ({
    token: new URLSearchParams(body).get('logout_token') ?? '',
    contentType: headers['content-type'],
    method,
  });
  return startToldServer({ path: '/logout', read, status: 200 });
}
