import { createHash, generateKeyPairSync, randomBytes, randomUUID, sign } from 'node:crypto';
import { HttpClient } from './http-client.js';

const CALLBACK = 'https://client.example/callback';
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/**
 * The keys of every client with the profile FAPI 2.0. One pair signs client assertions, the other
 * DPoP proofs.
 */
const CLIENT_KEYS = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const DPOP_KEYS = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const DPOP_JWK = DPOP_KEYS.publicKey.export({ format: 'jwk' });
const CLIENT_JWK = {
  ...CLIENT_KEYS.publicKey.export({ format: 'jwk' }),
  alg: 'ES256',
  kid: 'one',
  use: 'sig',
};

/** The applications of each person, as bodies of `POST /api/v1/applications`. */
const REGISTRATIONS = {
  service: { name: 'Service', type: 'service', scopes: ['read'] },
  web: { name: 'Web', type: 'web', redirect_uris: [CALLBACK] },
  fapi: {
    name: 'FAPI',
    type: 'web',
    profile: 'fapi2',
    redirect_uris: [CALLBACK],
    jwks: { keys: [CLIENT_JWK] },
  },
};

/**
 * Returns the applications of a person as metadata for `oidc-provider`, with the ids and secrets
 * that our server gave them.
 */
export function libraryClients({ service, web, fapi }) {
  return [
    {
      client_id: service.id,
      client_secret: service.secret,
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
    },
    { client_id: web.id, client_secret: web.secret, redirect_uris: [CALLBACK] },
    {
      client_id: fapi.id,
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [CLIENT_JWK] },
      require_pushed_authorization_requests: true,
      dpop_bound_access_tokens: true,
      id_token_signed_response_alg: 'ES256',
    },
  ];
}

/** Registers the applications of a person with our server. */
export async function registerApplications(baseUrl, sessionToken) {
  const http = new HttpClient(baseUrl);
  const headers = { authorization: `Bearer ${sessionToken}` };
  const applications = {};
  for (const [kind, registration] of Object.entries(REGISTRATIONS)) {
    const answer = await http.postJson('/api/v1/applications', registration, headers);
    const { client_id: id, client_secret: secret } = JSON.parse(expectStatus(201, answer).body);
    applications[kind] = { id, secret };
  }
  http.close();
  return applications;
}

/** A person with a browser, and the person's OAuth clients. */
export class OAuthPerson {
  #http;
  #applications;

  constructor(baseUrl, applications, cookies) {
    this.#http = new HttpClient(baseUrl, cookies);
    this.#applications = applications;
  }

  /**
   * Signs the person in to the web application. Returns the bearer token that the application gets.
   */
  async bearerToken() {
    const { web } = this.#applications;
    const { verifier, challenge } = newPkce();
    const query = new URLSearchParams({
      client_id: web.id,
      ...authorizationRequest(challenge),
    });
    const code = await this.#codeAt(`/oauth/authorize?${query.toString()}`, { hops: 4 });
    const fields = codeRequest(code, verifier);
    const answer = await this.#http.post('/oauth/token', fields, basicAuthentication(web));
    return JSON.parse(expectStatus(200, answer).body).access_token;
  }

  /**
   * Runs an authorization of FAPI 2.0: it pushes a request, opens it in the browser, and redeems
   * the code. A browser that is logged in is redirected to the client at once, so that one redirect
   * (`hops`) is enough.
   */
  async fapiCycle({ hops = 1 } = {}) {
    const { id } = this.#applications.fapi;
    const { verifier, challenge } = newPkce();
    const pushed = await this.#http.post(
      '/oauth/par',
      { ...authorizationRequest(challenge), ...this.#assertion() },
      { dpop: this.#proof('/oauth/par') },
    );
    const { request_uri: requestUri } = JSON.parse(expectStatus(201, pushed).body);
    const query = new URLSearchParams({ client_id: id, request_uri: requestUri });
    const code = await this.#codeAt(`/oauth/authorize?${query.toString()}`, { hops });
    const answer = await this.#http.post(
      '/oauth/token',
      { ...codeRequest(code, verifier), ...this.#assertion() },
      { dpop: this.#proof('/oauth/token') },
    );
    const { token_type: type, id_token: idToken } = JSON.parse(expectStatus(200, answer).body);
    if (type !== 'DPoP' || idToken === undefined) throw new Error(`got ${answer.body}`);
  }

  close() {
    this.#http.close();
  }

  /**
   * Follows the redirects of an authorization request, at most `hops` of them, and returns the
   * authorization code that the last redirect carries.
   */
  async #codeAt(address, { hops }) {
    let next = address;
    for (let hop = 0; hop < hops; hop += 1) {
      const answer = expectStatus(303, await this.#http.open(next));
      next = new URL(answer.headers.location, this.#http.baseUrl);
      if (!next.href.startsWith(this.#http.baseUrl)) break;
    }
    const code = next.href.startsWith(CALLBACK) && next.searchParams.get('code');
    if (!code) throw new Error(`the browser was sent to ${next.href}`);
    return code;
  }

  /** Returns the fields that authenticate the FAPI client (RFC 7523 §2.2). */
  #assertion() {
    const { id } = this.#applications.fapi;
    const iat = epochSeconds();
    const claims = {
      iss: id,
      sub: id,
      aud: this.#http.baseUrl,
      jti: randomUUID(),
      iat,
      exp: iat + 60,
    };
    return {
      client_id: id,
      client_assertion: signedJwt({ alg: 'ES256', kid: 'one' }, claims, CLIENT_KEYS.privateKey),
      client_assertion_type: ASSERTION_TYPE,
    };
  }

  /**
   * Returns a DPoP proof for a POST to a path (RFC 9449 §4.2). The proof shows that the client has
   * the private key.
   */
  #proof(path) {
    const header = { alg: 'ES256', typ: 'dpop+jwt', jwk: DPOP_JWK };
    const htu = this.#http.baseUrl + path;
    const claims = { htm: 'POST', htu, jti: randomUUID(), iat: epochSeconds() };
    return signedJwt(header, claims, DPOP_KEYS.privateKey);
  }
}

/** Returns the header of a client that authenticates with its secret (RFC 6749 §2.3.1). */
export function basicAuthentication({ id, secret }) {
  const credentials = [id, secret].map(encodeURIComponent).join(':');
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
}

function authorizationRequest(challenge) {
  return {
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid email',
    state: randomUUID(),
    nonce: randomUUID(),
    code_challenge: challenge,
    code_challenge_method: 'S256',
  };
}

function codeRequest(code, verifier) {
  return {
    grant_type: 'authorization_code',
    code,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
  };
}

/** Returns a new code verifier and its challenge for PKCE (RFC 7636 §4). */
function newPkce() {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

function signedJwt(header, claims, key) {
  const input = [header, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

function epochSeconds() {
  return Math.floor(Date.now() / 1000);
}

function expectStatus(expected, answer) {
  if (answer.status === expected) return answer;
  throw new Error(`status ${answer.status} in place of ${expected}: ${answer.body}`);
}
