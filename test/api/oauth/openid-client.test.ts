import { exportJWK, generateKeyPair } from 'jose';
import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication, claimsOf } from '../../support/applications.js';
import type { Client } from '../../support/client.js';
import { newAddress } from '../../support/client.js';

const CALLBACK = 'https://client.example/callback';
const ADA = 'ada@openid-client.example';

describe('openid-client against the running server', () => {
  let app: TestApp;
  let ada: Client;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled(ADA));
  });
  afterAll(() => app.close());

  /**
   * Configures openid-client from the discovery metadata. Each of its requests has an address of
   * its own.
   */
  async function discover(
    clientId: string,
    metadata: Partial<client.ClientMetadata>,
    authentication?: client.ClientAuth,
  ): Promise<client.Configuration> {
    return client.discovery(new URL(app.baseUrl), clientId, metadata, authentication, {
      execute: [client.allowInsecureRequests],
      [client.customFetch]: fetchFromAnywhere,
    });
  }

  /** Follows redirects until one leads to the client, and consents on the way. */
  async function authorizeIn(browser: Client, url: URL): Promise<URL> {
    let next = url.href;
    for (let hops = 0; hops < 6; hops += 1) {
      const answer = await browser.get(next, { address: newAddress() });
      const location = answer.headers.get('location');
      if (location === null) throw new Error(`${next} answered ${answer.status}: ${answer.text}`);
      if (location.startsWith(CALLBACK)) return new URL(location);
      if (location.startsWith('/interaction/')) {
        const agreed = await browser.post(`${location}/consent`, {}, { address: newAddress() });
        next = agreed.json.redirect_to as string;
      } else next = location;
    }
    throw new Error('too many redirects');
  }

  it('gets tokens for a code with PKCE, reads userinfo, introspects and revokes', async () => {
    const { clientId, clientSecret } = await addApplication(
      app,
      { redirect_uris: [CALLBACK], grant_types: ['authorization_code'], response_types: ['code'] },
      { owner: ADA },
    );
    const config = await discover(
      clientId,
      { client_secret: clientSecret },
      client.ClientSecretBasic(),
    );
    const pkceCodeVerifier = client.randomPKCECodeVerifier();
    const expectedState = client.randomState();
    const expectedNonce = client.randomNonce();
    const url = client.buildAuthorizationUrl(config, {
      redirect_uri: CALLBACK,
      scope: 'openid email profile',
      state: expectedState,
      nonce: expectedNonce,
      code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    });
    const tokens = await client.authorizationCodeGrant(config, await authorizeIn(ada, url), {
      pkceCodeVerifier,
      expectedState,
      expectedNonce,
      idTokenExpected: true,
    });
    const claims = tokens.claims();
    expect(claims).toMatchObject({ hardware_verified: true, amr: ['hwk', 'pin', 'user'] });
    expect(tokens.refresh_token).toBeUndefined();

    const person = await client.fetchUserInfo(config, tokens.access_token, claims?.sub ?? '');
    expect(person).toMatchObject({ email: ADA, email_verified: true, hardware_verified: true });
    const state = await client.tokenIntrospection(config, tokens.access_token);
    expect(state).toMatchObject({
      active: true,
      client_id: clientId,
      sub: claims?.sub,
      email: ADA,
      hardware_verified: true,
      auth_time: claims?.['auth_time'],
    });
    await client.tokenRevocation(config, tokens.access_token);
    expect((await client.tokenIntrospection(config, tokens.access_token)).active).toBe(false);
  });

  it('completes FAPI 2.0: PAR, JAR, JARM, DPoP and private_key_jwt', async () => {
    const keys = await generateKeyPair('ES256', { extractable: true });
    const { clientId } = await addApplication(
      app,
      {
        redirect_uris: [CALLBACK],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        token_endpoint_auth_method: 'private_key_jwt',
        svc_profile: 'fapi2',
        jwks: {
          keys: [{ ...(await exportJWK(keys.publicKey)), alg: 'ES256', kid: 'one', use: 'sig' }],
        },
        require_pushed_authorization_requests: true,
        require_signed_request_object: true,
        dpop_bound_access_tokens: true,
        id_token_signed_response_alg: 'ES256',
        authorization_signed_response_alg: 'ES256',
        response_modes: ['jwt', 'query.jwt'],
      },
      { owner: ADA },
    );
    const signer = { key: keys.privateKey, kid: 'one' };
    const config = await discover(
      clientId,
      { id_token_signed_response_alg: 'ES256', authorization_signed_response_alg: 'ES256' },
      client.PrivateKeyJwt(signer),
    );
    client.useJwtResponseMode(config);
    const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair('ES256'));
    const pkceCodeVerifier = client.randomPKCECodeVerifier();
    const expectedNonce = client.randomNonce();
    const now = Math.floor(Date.now() / 1000);
    const withRequest = await client.buildAuthorizationUrlWithJAR(
      config,
      {
        redirect_uri: CALLBACK,
        scope: 'openid email',
        nonce: expectedNonce,
        code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: 'S256',
        nbf: String(now),
      },
      signer,
      { [client.modifyAssertion]: (_header, payload) => Object.assign(payload, { nbf: now }) },
    );
    const url = await client.buildAuthorizationUrlWithPAR(config, withRequest.searchParams, {
      DPoP,
    });
    const tokens = await client.authorizationCodeGrant(
      config,
      await authorizeIn(ada, url),
      { pkceCodeVerifier, expectedNonce, idTokenExpected: true },
      undefined,
      { DPoP },
    );
    expect(tokens.token_type).toBe('dpop');
    const claims = tokens.claims();
    const person = await client.fetchUserInfo(config, tokens.access_token, claims?.sub ?? '', {
      DPoP,
    });
    expect(person['email']).toBe(ADA);
    const state = await client.tokenIntrospection(config, tokens.access_token);
    expect(state).toMatchObject({
      active: true,
      token_type: 'DPoP',
      cnf: { jkt: expect.any(String) as string },
    });
  });

  it('registers itself, gets consent, manages its registration, and logs out', async () => {
    const config = await client.dynamicClientRegistration(
      new URL(app.baseUrl),
      {
        client_name: 'A visitor',
        redirect_uris: [CALLBACK],
        post_logout_redirect_uris: ['https://client.example/bye'],
        token_endpoint_auth_method: 'client_secret_post',
      },
      undefined,
      { execute: [client.allowInsecureRequests], [client.customFetch]: fetchFromAnywhere },
    );
    const pkceCodeVerifier = client.randomPKCECodeVerifier();
    const { client: browser } = await app.enrolled('grace@openid-client.example');
    const url = client.buildAuthorizationUrl(config, {
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    });
    const arrived = await authorizeIn(browser, url);
    const tokens = await client.authorizationCodeGrant(config, arrived, { pkceCodeVerifier });
    expect(tokens.claims()?.['hardware_verified']).toBe(true);

    const leave = client.buildEndSessionUrl(config, {
      id_token_hint: tokens.id_token ?? '',
      post_logout_redirect_uri: 'https://client.example/bye',
      state: 'so long',
    });
    const page = await browser.get(leave.href);
    const [, xsrf = ''] = /name="xsrf" value="([^"]+)"/.exec(page.text) ?? [];
    const done = await browser.send('POST', '/oauth/logout/confirm', {
      body: new URLSearchParams({ xsrf, logout: 'yes' }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    });
    expect(done.json.location).toBe('https://client.example/bye?state=so+long');
    expect(browser.cookie('svc_session')).toBeUndefined();
    expect((await client.tokenIntrospection(config, tokens.access_token)).active).toBe(false);
    expect((await browser.get('/v1/keys')).status).toBe(401);
  });

  it('10.words gets a JWT by client credentials with hardware_verified false', async () => {
    const resource = 'https://orders.example/api';
    const { clientId, clientSecret } = await addApplication(
      app,
      {
        redirect_uris: [],
        grant_types: ['client_credentials'],
        response_types: [],
        svc_resource_scopes: 'orders:read orders:write',
      },
      { owner: ADA },
    );
    const config = await discover(
      clientId,
      { client_secret: clientSecret },
      client.ClientSecretBasic(),
    );
    const tokens = await client.clientCredentialsGrant(config, { resource, scope: 'orders:read' });
    expect(tokens.expires_in).toBe(300);
    expect(tokens.scope).toBe('orders:read');
    const state = await client.tokenIntrospection(config, tokens.access_token);
    expect(state).toMatchObject({ active: true, aud: resource, scope: 'orders:read' });
    expect(state['hardware_verified']).toBe(false);
    expect(claimsOf(tokens.access_token)['hardware_verified']).toBe(false);
    await client.tokenRevocation(config, tokens.access_token);
    expect((await client.tokenIntrospection(config, tokens.access_token)).active).toBe(false);
  });
});

/** A fetch for openid-client that sends each request from a new address. */
const fetchFromAnywhere: client.CustomFetch = (url, options) =>
  fetch(url, {
    ...options,
    headers: { ...options.headers, 'x-forwarded-for': newAddress() },
  } as RequestInit);
