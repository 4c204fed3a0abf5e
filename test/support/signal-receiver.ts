import type { IncomingMessage } from 'node:http';
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet, type JWTPayload } from 'jose';
import { startToldServer, type ToldServer } from './told-server.js';

/** The values that a receiver expects in a security event token (RFC 8417). */
export interface SignalParty {
  readonly issuer: string;
  readonly clientId: string;
  readonly streamId: string;
  readonly jwks: JSONWebKeySet;
}

/** The content of a security event token that was verified. */
export interface VerifiedSignal {
  readonly payload: JWTPayload;
  /** The last part of the event's URI. */
  readonly type: string;
  readonly event: Readonly<Record<string, unknown>>;
  readonly subject: Readonly<Record<string, unknown>>;
}

const ABOUT_STREAMS = new Set(['verification', 'stream-updated']);
const URI = /^https:\/\/schemas\.openid\.net\/secevent\/(caep|risc|ssf)\/event-type\/([a-z-]+)$/;
const OWNERS: Readonly<Record<string, string>> = {
  'session-revoked': 'caep',
  'credential-change': 'caep',
  'session-established': 'caep',
  'account-disabled': 'risc',
  'account-enabled': 'risc',
  'account-purged': 'risc',
  verification: 'ssf',
  'stream-updated': 'ssf',
};

/**
 * Verifies a security event token by the library `jose`, and no code of the service.
 *
 * @param seen the ids (`jti`) of earlier tokens; a token with one of them is refused
 * @throws Error if a receiver must refuse the token
 */
export async function verifySignal(
  token: string,
  { issuer, clientId, streamId, jwks }: SignalParty,
  seen: Set<string> = new Set(),
): Promise<VerifiedSignal> {
  // The algorithm is RS256 (CAEP interoperability profile §2.6), and the type is explicit (SSF
  // §11.1.4). Issuer and audience are those of the stream (RFC 8417 §2.2, SSF §11.1.7).
  const { payload } = await jwtVerify(token, createLocalJWKSet(jwks), {
    issuer,
    audience: clientId,
    algorithms: ['RS256'],
    typ: 'secevent+jwt',
    requiredClaims: ['iat', 'jti', 'txn', 'sub_id', 'events'],
  });
  if ('sub' in payload) throw new Error('SSF §11.1.2: a sub');
  if ('exp' in payload) throw new Error('SSF §11.1.6: an exp');
  if ('nonce' in payload) throw new Error('RFC 8417 §4.5: the nonce of an ID token');
  if (Number(payload.iat) > Date.now() / 1000 + 60) throw new Error('RFC 8417 §2.2: of the future');
  const { type, event } = oneEvent(payload['events']);
  const subject = payload['sub_id'] as Readonly<Record<string, unknown>>;
  assertSubject(type, subject, { issuer, streamId });
  if (!ABOUT_STREAMS.has(type)) assertReasons(event);
  const { jti = '' } = payload;
  if (jti === '' || seen.has(jti)) throw new Error('RFC 8417 §2.2: no id of its own');
  seen.add(jti);
  return { payload, type, event, subject };
}

/**
 * Returns the only event of a token. Throws if there are several events, or if its URI is unknown
 * (CAEP interoperability profile §2.8.1).
 */
function oneEvent(events: unknown): Pick<VerifiedSignal, 'type' | 'event'> {
  const entries = Object.entries((events ?? {}) as Record<string, unknown>);
  const [[uri, event] = ['', undefined], ...others] = entries;
  const [, owner, type = ''] = URI.exec(uri) ?? [];
  if (others.length > 0 || owner === undefined || OWNERS[type] !== owner) {
    throw new Error('CAEP interoperability profile §2.8.1: not one known event');
  }
  if (typeof event !== 'object' || event === null) throw new Error('RFC 8417 §2.2: no payload');
  return { type, event: event as Readonly<Record<string, unknown>> };
}

/**
 * Throws if the subject of an event does not have the format of the profile (§2.5, RFC 9493 §3.2).
 */
function assertSubject(
  type: string,
  subject: VerifiedSignal['subject'],
  { issuer, streamId }: Pick<SignalParty, 'issuer' | 'streamId'>,
): void {
  const { format } = subject;
  const isOfStream = format === 'opaque' && subject['id'] === streamId;
  const isUser =
    (format === 'iss_sub' && subject['iss'] === issuer && typeof subject['sub'] === 'string') ||
    (format === 'email' && typeof subject['email'] === 'string');
  if (ABOUT_STREAMS.has(type) ? isOfStream : isUser) return;
  throw new Error('CAEP interoperability profile §2.5: not a subject of the event');
}

/**
 * Throws if an event about a person lacks one of the members that it must have (CAEP §2, CAEP
 * interoperability profile §3).
 */
function assertReasons(event: VerifiedSignal['event']): void {
  const reason = event['reason_admin'] as Readonly<Record<string, unknown>> | undefined;
  const words = Object.values(reason ?? {});
  if (words.length === 0 || words.some((word) => typeof word !== 'string' || word === '')) {
    throw new Error('CAEP interoperability profile §3.1: no reason_admin');
  }
  if (!Number.isInteger(event['event_timestamp'])) throw new Error('CAEP §2: no event_timestamp');
  if (!['admin', 'user', 'policy', 'system'].includes(String(event['initiating_entity']))) {
    throw new Error('CAEP §2: no initiating_entity');
  }
}

/** A security event token that the service pushed to a receiver. */
export interface ReceivedSignal {
  readonly token: string;
  readonly claims: JWTPayload;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/**
 * A server of an application. The service pushes security event tokens to it, and it records them.
 */
export type SignalReceiver = ToldServer<ReceivedSignal>;

/** Starts a receiver on loopback, which answers 202 until a test changes `answer`. */
export function startSignalReceiver(): Promise<SignalReceiver> {
  const read = (token: string, { headers }: IncomingMessage): ReceivedSignal => ({
    token,
    claims: claimsOf(token),
    headers: {
      'content-type': headers['content-type'],
      accept: headers.accept,
      authorization: headers.authorization,
    },
  });
  return startToldServer({ path: '/events', read, status: 202 });
}

/** Reads the claims of a token without verifying it. */
export function claimsOf(token: string): JWTPayload {
  return JSON.parse(
    Buffer.from(token.split('.')[1] ?? '', 'base64url').toString() || '{}',
  ) as JWTPayload;
}

/** Returns the last part of the event's URI in the claims of a token. */
export function eventOf(claims: JWTPayload): string {
  return (
    Object.keys(claims['events'] ?? {})[0]
      ?.split('/')
      .at(-1) ?? ''
  );
}
