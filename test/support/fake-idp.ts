import { createHash, randomUUID } from 'node:crypto';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { CompactSign, exportJWK, generateKeyPair } from 'jose';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';

/** Members of a JSON object to set; undefined removes a member. */
export type Json = Readonly<Record<string, unknown>>;

/**
 * A response of the provider. A body that is no text is sent as JSON, which is also the default
 * type.
 */
interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly contentType?: string;
}

/**
 * The faults of the provider. A missing property means that the provider is correct in that
 * respect. Tests change the faults while the provider runs.
 */
export interface Misbehaviour {
  /** Returns a changed discovery document. */
  document?: (document: Json) => unknown;
  /** Replaces the response with the discovery document. */
  discovery?: Answer;
  /** Delays every response by so many seconds. */
  delay?: number;
  /** Returns changed claims of the ID token. */
  claims?: (claims: Json) => Json;
  /**
   * The key that signs the ID token: the published key (the default), another key, or the client's
   * secret. With `none` the token is unsigned.
   */
  signature?: 'right' | 'foreign key' | 'HS256' | 'none';
  /** Replaces the response of the token endpoint. */
  token?: Answer;
  /**
   * The response of the userinfo endpoint. Without it, the discovery document does not name that
   * endpoint.
   */
  userinfo?: Json;
  /** Changes the parameters of the redirect back to the service in place. */
  callback?: (parameters: URLSearchParams) => void;
  /** Replaces the response with the key set. */
  jwks?: Answer;
}

type Route = (form: URLSearchParams, authorization?: string) => Answer | Promise<Answer>;

/** A request that the token endpoint received. */
interface TokenRequest {
  readonly authorization: string | undefined;
  readonly form: Readonly<Record<string, string>>;
}

/** A running OpenID provider, and the client that it knows. */
export interface FakeIdp {
  readonly origin: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  misbehaviour: Misbehaviour;
  readonly tokenRequests: TokenRequest[];
  /** The number of times that the key set was fetched. */
  keySetRequests: number;
  /** Makes a new signing key. The key set then has only this key. */
  rotateKey(): Promise<void>;
  /**
   * Signs a user in without a browser. Takes the URL to which the service redirects, and returns
   * the URL to which the provider redirects back.
   */
  authorize(url: URL): URL;
  close(): Promise<void>;
}

async function newKey(alg: 'ES256' | 'RS256') {
  const { publicKey, privateKey } = await generateKeyPair(alg);
  const kid = randomUUID();
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), alg, use: 'sig', kid } };
}

/** The paths of the endpoints, if the provider does not use the discovery document of a vendor. */
const OWN_PATHS = {
  authorization_endpoint: '/authorize',
  token_endpoint: '/token',
  jwks_uri: '/jwks',
  userinfo_endpoint: '/userinfo',
} as const;

/**
 * Returns the paths of the endpoints in a vendor's discovery document, or else the provider's own.
 */
function pathsIn(document: Json | undefined): Record<keyof typeof OWN_PATHS, string> {
  if (!document) return OWN_PATHS;
  const names = Object.keys(OWN_PATHS) as (keyof typeof OWN_PATHS)[];
  const paths = names.map((name) => [name, new URL(String(document[name])).pathname]);
  return Object.fromEntries(paths) as Record<keyof typeof OWN_PATHS, string>;
}

/** Starts an OpenID provider whose responses a test can change, in order to test faults. */
export async function startFakeIdp(
  options: {
    readonly misbehaviour?: Misbehaviour;
    /** The path of the issuer, for example `/organizations/v2.0`. */
    readonly path?: string;
    readonly tls?: { readonly key: string; readonly cert: string };
    /**
     * The discovery document of a vendor. This provider's host replaces the hosts in it. The
     * provider then signs with RS256 instead of ES256.
     */
    readonly vendor?: Json;
  } = {},
): Promise<FakeIdp> {
  const alg = options.vendor ? 'RS256' : 'ES256';
  const paths = pathsIn(options.vendor);
  const foreign = await generateKeyPair(alg);
  let own = await newKey(alg);
  // If a client disconnects during a delay, the failed write is no error of the test.
  const answer: RequestListener = (req, res) => void serve(req, res).catch(() => res.destroy());
  const server = options.tls ? createHttpsServer(options.tls, answer) : createHttpServer(answer);
  const port = await listenOnLoopback(server);
  const origin = options.tls ? `https://localhost:${port}` : `http://127.0.0.1:${port}`;
  const codes = new Map<string, URLSearchParams>();

  const idp: FakeIdp = {
    origin,
    issuer: origin + (options.path ?? ''),
    clientId: 'svc',
    clientSecret: 'the client secret: 100% + more',
    misbehaviour: options.misbehaviour ?? {},
    tokenRequests: [],
    keySetRequests: 0,
    async rotateKey() {
      own = await newKey(alg);
    },
    authorize(url) {
      const code = randomUUID();
      codes.set(code, url.searchParams);
      const back = new URL(url.searchParams.get('redirect_uri') ?? '');
      back.searchParams.set('code', code);
      back.searchParams.set('state', url.searchParams.get('state') ?? '');
      idp.misbehaviour.callback?.(back.searchParams);
      return back;
    },
    close: () => stopServer(server),
  };

  const routes: Record<string, Route> = {
    [`${new URL(idp.issuer).pathname.replace(/\/$/, '')}/.well-known/openid-configuration`]: () => {
      const document = {
        issuer: idp.issuer,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        jwks_uri: `${origin}/jwks`,
        ...(idp.misbehaviour.userinfo ? { userinfo_endpoint: `${origin}/userinfo` } : {}),
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['ES256'],
      };
      if (options.vendor) {
        const served = JSON.stringify(options.vendor).replaceAll(/https:\/\/[^/"]+/g, origin);
        return { status: 200, body: served };
      }
      const { discovery, document: rewrite } = idp.misbehaviour;
      return discovery ?? { status: 200, body: rewrite ? rewrite(document) : document };
    },
    [paths.jwks_uri]: () => {
      idp.keySetRequests += 1;
      return idp.misbehaviour.jwks ?? { status: 200, body: { keys: [own.jwk] } };
    },
    [paths.userinfo_endpoint]: () => ({ status: 200, body: idp.misbehaviour.userinfo }),
    [paths.token_endpoint]: async (form, authorization) => {
      idp.tokenRequests.push({ authorization, form: Object.fromEntries(form) });
      if (idp.misbehaviour.token) return idp.misbehaviour.token;
      const request = codes.get(form.get('code') ?? '');
      codes.delete(form.get('code') ?? '');
      const verifier = form.get('code_verifier') ?? '';
      const proof = createHash('sha256').update(verifier).digest('base64url');
      const fits =
        request?.get('code_challenge') === proof &&
        request.get('redirect_uri') === form.get('redirect_uri');
      if (!fits) return { status: 400, body: { error: 'invalid_grant' } };
      const idToken = await issue(claimsFor(request));
      const body = { access_token: randomUUID(), token_type: 'Bearer', id_token: idToken };
      return { status: 200, body };
    },
  };

  function claimsFor(request: URLSearchParams): Json {
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: idp.issuer,
      sub: 'subject-1',
      aud: idp.clientId,
      iat: now,
      exp: now + 300,
      nonce: request.get('nonce'),
      email: 'Ada@Engine.test',
      email_verified: true,
      name: 'Ada Lovelace',
    };
    return idp.misbehaviour.claims?.(claims) ?? claims;
  }

  async function issue(claims: Json): Promise<string> {
    const { signature = 'right' } = idp.misbehaviour;
    const payload = Buffer.from(JSON.stringify(claims));
    if (signature === 'none') return `${btoa('{"alg":"none"}')}.${payload.toString('base64url')}.`;
    if (signature === 'HS256') {
      const secret = Buffer.from(idp.clientSecret);
      return new CompactSign(payload).setProtectedHeader({ alg: 'HS256' }).sign(secret);
    }
    const { privateKey } = signature === 'right' ? own : foreign;
    return new CompactSign(payload).setProtectedHeader({ alg, kid: own.jwk.kid }).sign(privateKey);
  }

  async function serve(...[req, res]: Parameters<RequestListener>): Promise<void> {
    if (idp.misbehaviour.delay)
      await sleep(idp.misbehaviour.delay * 1000, undefined, { ref: false });
    const url = new URL(req.url ?? '/', origin);
    if (url.pathname === paths.authorization_endpoint) {
      res.writeHead(303, { location: idp.authorize(url).href }).end();
      return;
    }
    const form = new URLSearchParams(await text(req));
    const found = await routes[url.pathname]?.(form, req.headers.authorization);
    const { status, body, contentType }: Answer = found ?? { status: 404, body: {} };
    res.writeHead(status, { 'content-type': contentType ?? 'application/json' });
    res.end(typeof body === 'string' ? body : JSON.stringify(body));
  }

  return idp;
}

/** Returns a function that changes members of a JSON object; undefined removes a member. */
export function changed(patch: Json): (original: Json) => Json {
  return (original) => ({ ...original, ...patch });
}

/**
 * Follows redirects as a browser does, with cookies, until one leads to `redirectUri`. Returns the
 * whole URL of that redirect.
 */
export async function followToCallback(start: URL, redirectUri: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = start;
  for (let hops = 0; hops < 10; hops += 1) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [name = '', value = ''] = (line.split(';')[0] ?? '').split('=');
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (!location) throw new Error(`${url.href} answered ${response.status} and leads nowhere`);
    url = new URL(location, url);
    if (url.href.startsWith(redirectUri)) return url;
  }
  throw new Error('too many redirects');
}
