import { createHash, randomBytes, randomUUID } from 'node:crypto';
import {
  SignJWT,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  type JWK,
  type CryptoKey,
} from 'jose';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import type { TestApp } from './app.js';
import { newAddress, type Answer, type Client } from './client.js';

/** The redirect URI of the test clients. */
export const CALLBACK = 'https://client.example/callback';

/**
 * A key pair of an OAuth client. `jwk` is the public key in the form in which the client registers
 * it.
 */
export interface ClientKeys {
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

export async function newClientKeys(alg = 'ES256'): Promise<ClientKeys> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), alg, kid: 'one', use: 'sig' } };
}

/** Returns the registration metadata of a FAPI 2.0 client with `private_key_jwt`, PAR and DPoP. */
export function fapiMetadata({ jwk }: ClientKeys): Record<string, unknown> {
  return {
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'private_key_jwt',
    svc_profile: 'fapi2',
    jwks: { keys: [jwk] },
    require_pushed_authorization_requests: true,
    dpop_bound_access_tokens: true,
    id_token_signed_response_alg: 'ES256',
  };
}

/** Signs a client assertion (RFC 7523 §3) and returns its form fields. */
export async function assertionFields(
  app: Pick<TestApp, 'baseUrl'>,
  clientId: string,
  { privateKey }: ClientKeys,
  claims: Readonly<Record<string, unknown>> = {},
): Promise<Record<string, string>> {
  const now = Math.floor(Date.now() / 1000);
  const jwt = await new SignJWT({
    iss: clientId,
    sub: clientId,
    aud: app.baseUrl,
    jti: randomUUID(),
    iat: now,
    exp: now + 60,
    ...claims,
  })
    .setProtectedHeader({ alg: 'ES256', kid: 'one' })
    .sign(privateKey);
  return {
    client_id: clientId,
    client_assertion: jwt,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  };
}

/** A client's key for DPoP proofs (RFC 9449). `proof` signs a proof for one request. */
export interface DpopKey {
  readonly thumbprint: string;
  proof(method: string, url: string, claims?: Readonly<Record<string, unknown>>): Promise<string>;
}

export async function newDpopKey(): Promise<DpopKey> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const jwk = await exportJWK(publicKey);
  return {
    thumbprint: await calculateJwkThumbprint(jwk),
    proof: (htm, htu, claims = {}) =>
      new SignJWT({ htm, htu, jti: randomUUID(), iat: Math.floor(Date.now() / 1000), ...claims })
        .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
        .sign(privateKey),
  };
}

/** Returns the value of the claim `ath` in a DPoP proof: the SHA-256 of the access token. */
export function ath(accessToken: string): string {
  return createHash('sha256').update(accessToken).digest('base64url');
}

/** Returns a new PKCE verifier and its S256 challenge (RFC 7636). */
export function newPkce(): { readonly verifier: string; readonly challenge: string } {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

/** Sends a form to an endpoint. By default it comes from an unused client IP address. */
export function postForm(
  app: Pick<TestApp, 'client'>,
  path: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return app.client().send('POST', path, {
    address: newAddress(),
    body: new URLSearchParams(fields).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: '', ...headers },
  });
}

/**
 * Sends an authorization request as a browser, and follows redirects until one leads to the client.
 * On the way it gives consent. Returns the URL at the client.
 *
 * @param key the security key, if the request needs another touch
 */
export async function authorize(
  browser: Client,
  parameters: Readonly<Record<string, string>>,
  key?: SoftwareKey,
): Promise<URL> {
  let next = `/oauth/authorize?${new URLSearchParams(parameters).toString()}`;
  for (let hops = 0; hops < 6; hops += 1) {
    const answer = await browser.get(next, { address: newAddress() });
    const location = answer.headers.get('location');
    if (location === null) throw new Error(`${next} answered ${answer.status}: ${answer.text}`);
    if (!location.startsWith('/') && !location.startsWith(browser.baseUrl))
      return new URL(location);
    if (location.startsWith('/interaction/')) {
      const page = await browser.get(location, { address: newAddress() });
      const onward = page.headers.get('location');
      if (page.status === 403) throw new Error(`${location} answered 403: ${page.text}`);
      if (onward === null) {
        const agreed = await browser.post(`${location}/consent`, {}, { address: newAddress() });
        next = agreed.json.redirect_to as string;
      } else if (key && onward.startsWith('/login')) {
        await browser.logIn(key, { address: newAddress() });
        next = location;
      } else next = onward;
    } else next = location;
  }
  throw new Error('too many redirects');
}

/**
 * Gets an authorization code from the user of the browser. Returns the form fields that redeem it,
 * except for those that authenticate the client.
 *
 * @param asked the scopes, and the security key if the request needs another touch
 */
export async function newCodeFields(
  browser: Client,
  clientId: string,
  asked: { readonly scope?: string; readonly key?: SoftwareKey } = {},
): Promise<Record<string, string>> {
  const { verifier, challenge } = newPkce();
  const request = {
    client_id: clientId,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: asked.scope ?? 'openid email',
    code_challenge: challenge,
    code_challenge_method: 'S256',
  };
  const sent = await authorize(browser, request, asked.key);
  return {
    grant_type: 'authorization_code',
    code: parameterOf(sent, 'code'),
    code_verifier: verifier,
    redirect_uri: CALLBACK,
  };
}

/** Returns a parameter in the query of a URL, or an empty text if there is none. */
export function parameterOf(url: URL, name: string): string {
  return url.searchParams.get(name) ?? '';
}
