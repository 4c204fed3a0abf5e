import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet, type JWTPayload } from 'jose';

/** The expectations of a relying party that verifies logout tokens. */
export interface RelyingParty {
  readonly issuer: string;
  readonly clientId: string;
  readonly algorithm: 'ES256' | 'RS256';
  readonly jwks: JSONWebKeySet;
}

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/**
 * Verifies a logout token by the rules of OpenID Connect Back-Channel Logout §2.6, with `jose` and
 * no code of the service. @throws Error for a token that a relying party must refuse
 *
 * @param seen the ids of the tokens that came before, to which the token is added
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

/** A request that came to a receiver. */
export interface ReceivedLogout {
  readonly token: string;
  readonly contentType: string | undefined;
  readonly method: string | undefined;
}

/** The answer of a receiver; `hang` answers nothing, and `flood` 100 MB. */
export type ReceiverAnswer =
  | number
  | 'hang'
  | 'flood'
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    };

/** A server of an application that takes logout tokens. */
export interface LogoutReceiver {
  readonly uri: string;
  readonly received: ReceivedLogout[];
  /** The most requests that were under way at once. */
  readonly most: () => number;
  answer: (n: number) => ReceiverAnswer;
  close(): Promise<void>;
}

/** Sends 100 MB, as far as the client takes them. */
async function flood(response: ServerResponse): Promise<void> {
  const part = Buffer.alloc(1_000_000, 'x');
  response.writeHead(200);
  for (let sent = 0; sent < 100 && !response.destroyed; sent += 1) {
    if (!response.write(part))
      await Promise.race([once(response, 'drain'), once(response, 'close')]);
  }
  response.end();
}

/** Starts a receiver on loopback, which answers 200 until a test changes `answer`. */
export async function startLogoutReceiver(): Promise<LogoutReceiver> {
  const received: ReceivedLogout[] = [];
  let underWay = 0;
  let most = 0;
  const server = createServer((request, response) => void take(request, response));
  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    underWay += 1;
    most = Math.max(most, underWay);
    response.on('close', () => {
      underWay -= 1;
    });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const form = new URLSearchParams(Buffer.concat(chunks).toString());
    received.push({
      token: form.get('logout_token') ?? '',
      contentType: request.headers['content-type'],
      method: request.method,
    });
    const answer = receiver.answer(received.length);
    if (answer === 'hang') return;
    if (answer === 'flood') {
      await flood(response);
      return;
    }
    const {
      status,
      headers = {},
      body = '',
    } = typeof answer === 'number' ? { status: answer } : answer;
    response.writeHead(status, { ...headers }).end(body);
  }
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => void server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const receiver: LogoutReceiver = {
    uri: `http://127.0.0.1:${port}/logout`,
    received,
    most: () => most,
    answer: () => 200,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return receiver;
}
