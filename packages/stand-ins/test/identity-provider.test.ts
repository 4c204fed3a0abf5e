import { createHash } from 'node:crypto';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '../src/identity-provider/identity-provider.js';

const CLIENT = { clientId: 'service', clientSecret: 'the secret of the test' };
const REDIRECT_URI = 'http://127.0.0.1:9/callback';
const VERIFIER = 'v'.repeat(43);
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url');

let provider: DemoIdentityProvider;
let endpoints: Readonly<Record<string, string>>;

beforeAll(async () => {
  provider = await startDemoIdentityProvider({ ...CLIENT, redirectUri: REDIRECT_URI });
  const discovery = await fetch(`${provider.issuer}/.well-known/openid-configuration`);
  endpoints = (await discovery.json()) as Record<string, string>;
});
afterAll(() => provider.close());

/** Begins a login, and returns the URL that the provider redirects to. */
async function authorize(changes: Readonly<Record<string, string>>): Promise<URL> {
  const query = new URLSearchParams({
    client_id: CLIENT.clientId,
    redirect_uri: REDIRECT_URI,
    response_type: 'code',
    scope: 'openid email profile',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    ...changes,
  });
  const address = `${endpoints['authorization_endpoint']}?${query.toString()}`;
  const response = await fetch(address, { redirect: 'manual' });
  return new URL(response.headers.get('location') ?? '', provider.issuer);
}

/** Redeems a code at the token endpoint, with the code verifier of PKCE. */
function redeem(code: string, verifier: string): Promise<Response> {
  const basic = Buffer.from(`${CLIENT.clientId}:${encodeURIComponent(CLIENT.clientSecret)}`);
  return fetch(endpoints['token_endpoint'] ?? '', {
    method: 'POST',
    headers: { authorization: `Basic ${basic.toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: REDIRECT_URI,
      code_verifier: verifier,
    }),
  });
}

describe('the identity provider of tests', () => {
  it('signs in the address of a hint, and names it in a signed ID token', async () => {
    const back = await authorize({ login_hint: 'ada.lovelace@example.com' });
    const response = await redeem(back.searchParams.get('code') ?? '', VERIFIER);
    const { id_token: token } = (await response.json()) as { id_token: string };
    const keys = createRemoteJWKSet(new URL(endpoints['jwks_uri'] ?? ''));
    const { payload } = await jwtVerify(token, keys, {
      issuer: provider.issuer,
      audience: CLIENT.clientId,
    });
    expect(payload).toMatchObject({
      email: 'ada.lovelace@example.com',
      email_verified: true,
      name: 'Ada Lovelace',
    });
    expect(payload.sub).not.toContain('ada');
  });

  it('shows its page to a login without a hint', async () => {
    const page = await authorize({});
    expect(page.origin).toBe(provider.issuer);
    expect(page.searchParams.has('code')).toBe(false);
  });

  it('refuses a code with another verifier', async () => {
    const back = await authorize({ login_hint: 'ada@example.com' });
    const response = await redeem(back.searchParams.get('code') ?? '', 'w'.repeat(43));
    expect(await response.json()).toMatchObject({ error: 'invalid_grant' });
  });
});
