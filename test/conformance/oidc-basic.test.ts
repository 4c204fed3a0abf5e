import { createLocalJWKSet, jwtVerify, type JWTPayload } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Answer, Client } from '../support/client.js';
import { CALLBACK, newClientKeys, newPkce, parameterOf, postForm } from '../support/oauth-flow.js';

/*
 * The modules of the plan `oidcc-basic-certification-test-plan` (OpenID Connect Core). They run as
 * in the suite: with a client that registered itself, in certification test mode. The titles are
 * their names. Some tests show why the suite skips a module.
 */

const TOKEN = 'a token that only the conformance suite knows';
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

interface Registered {
  readonly client_id: string;
  readonly client_secret: string;
}

describe('oidcc-basic-certification-test-plan', () => {
  let app: TestApp;
  let client: Registered;
  let discovery: Record<string, unknown>;
  const register = async (metadata: object = {}): Promise<Registered> => {
    const { jwk } = await newClientKeys('RS256');
    const { status, json } = await app.client().post('/oauth/register', {
      client_name: 'conformance suite',
      grant_types: ['authorization_code'],
      response_types: ['code'],
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'client_secret_basic',
      jwks: { keys: [jwk] },
      contacts: ['certification@oidf.org'],
      ...metadata,
    });
    expect(status).toBe(201);
    return json as Registered;
  };
  beforeAll(async () => {
    app = await startTestApp({
      environment: { SVC_CERTIFICATION_TEST_TOKEN: TOKEN, SVC_IDPS: '' },
    });
    client = await register();
    discovery = (await app.client().get('/.well-known/openid-configuration'))
      .json as typeof discovery;
  });
  afterAll(() => app.close());

  /**
   * Sends an authorization request, and logs in if required. Returns the last page of the service,
   * or the URL of the client's callback.
   */
  const go = async (
    browser: Client,
    parameters: Record<string, string | undefined> = {},
    method: 'GET' | 'POST' = 'GET',
  ): Promise<Answer | URL> => {
    const asked = {
      client_id: client.client_id,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      state: 'the state',
      nonce: 'the nonce',
      ...parameters,
    };
    const present = Object.entries(asked).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, value]],
    );
    const query = new URLSearchParams(present).toString();
    let answer =
      method === 'GET'
        ? await browser.get(`/oauth/authorize?${query}`)
        : await browser.send('POST', '/oauth/authorize', {
            body: query,
            headers: { ...FORM, origin: 'https://client.example' },
          });
    for (let hops = 0; hops < 8; hops += 1) {
      const location = answer.headers.get('location');
      if (location === null) return answer;
      const url = new URL(location, app.baseUrl);
      if (url.origin !== new URL(app.baseUrl).origin) return url;
      if (url.pathname === '/login') {
        const interaction = url.searchParams.get('interaction') ?? '';
        const done = await browser.send('POST', '/certification/complete-login', {
          body: new URLSearchParams({ token: TOKEN, interaction }).toString(),
          headers: { ...FORM, accept: 'application/json' },
        });
        answer = await browser.get(done.json.redirect_to as string);
      } else answer = await browser.get(url.href);
    }
    throw new Error('too many redirects');
  };
  const arrived = async (...request: Parameters<typeof go>): Promise<URL> => {
    const outcome = await go(...request);
    if (!(outcome instanceof URL)) throw new Error(outcome.text);
    expect([parameterOf(outcome, 'state'), parameterOf(outcome, 'iss')]).toEqual([
      'the state',
      app.baseUrl,
    ]);
    return outcome;
  };
  const basic = ({ client_id: id, client_secret: secret }: Registered = client) => ({
    authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
  });
  const redeem = (url: URL, fields: Record<string, string> = {}) =>
    postForm(
      app,
      '/oauth/token',
      {
        grant_type: 'authorization_code',
        code: parameterOf(url, 'code'),
        redirect_uri: CALLBACK,
        ...fields,
      },
      basic(),
    );
  /** Verifies a token response and its ID token as the suite does after each request. */
  const verified = async (
    answer: Answer,
    { nonce }: { readonly nonce?: string | undefined } = { nonce: 'the nonce' },
  ) => {
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([
      200,
      expect.stringContaining('no-store'),
    ]);
    const { access_token, token_type, expires_in, id_token } = answer.json as Record<
      string,
      string
    >;
    expect([token_type, typeof access_token]).toEqual(['Bearer', 'string']);
    expect(Number(expires_in)).toBeGreaterThan(0);
    const jwks = createLocalJWKSet((await app.client().get('/oauth/jwks')).json);
    const { payload, protectedHeader } = await jwtVerify(id_token ?? '', jwks, {
      issuer: app.baseUrl,
      audience: client.client_id,
      algorithms: ['RS256'],
    });
    expect([typeof protectedHeader.kid, payload['nonce']]).toEqual(['string', nonce]);
    return { accessToken: access_token ?? '', claims: payload, idToken: id_token ?? '' };
  };
  const flow = async (
    parameters: Record<string, string | undefined> = {},
    browser = app.client(),
  ) => {
    const asked = { nonce: 'the nonce', ...parameters };
    return verified(await redeem(await arrived(browser, asked)), asked);
  };
  const userinfo = async (accessToken: string): Promise<JWTPayload> => {
    const headers = { authorization: `Bearer ${accessToken}` };
    const answer = await app.client().get('/oauth/userinfo', { headers });
    expect(answer.status).toBe(200);
    return answer.json as JWTPayload;
  };

  it('10.12 oidcc-server, oidcc-idtoken-signature', async () => {
    const { accessToken, claims } = await flow();
    expect((await userinfo(accessToken)).sub).toBe(claims.sub);
  });

  it('oidcc-response-type-missing', async () => {
    const url = await arrived(app.client(), { response_type: undefined });
    expect(parameterOf(url, 'error')).toBe('invalid_request');
  });

  it('oidcc-idtoken-unsigned is skipped: the algorithm none is not offered', () => {
    expect(discovery['id_token_signing_alg_values_supported']).not.toContain('none');
  });

  it.each<readonly [string, string, (token: string) => Parameters<Client['send']>[2]]>([
    ['oidcc-userinfo-get', 'GET', (t) => ({ headers: { authorization: `Bearer ${t}` } })],
    ['oidcc-userinfo-post-header', 'POST', (t) => ({ headers: { authorization: `Bearer ${t}` } })],
    ['oidcc-userinfo-post-body', 'POST', (t) => ({ body: `access_token=${t}`, headers: FORM })],
  ])('%s', async (_, method, options) => {
    const { accessToken, claims } = await flow();
    const answer = await app.client().send(method, '/oauth/userinfo', options(accessToken));
    expect([answer.status, answer.json.sub]).toEqual([200, claims.sub]);
  });

  it('10.12 oidcc-ensure-request-without-nonce-succeeds-for-code-flow', async () => {
    expect(await flow({ nonce: undefined })).toMatchObject({ claims: { sub: expect.any(String) } });
  });

  it('oidcc-scope-profile', async () => {
    const { accessToken } = await flow({ scope: 'openid profile' });
    expect(typeof (await userinfo(accessToken))['name']).toBe('string');
  });

  it('10.26 oidcc-scope-email, oidcc-ensure-other-scope-order-succeeds', async () => {
    for (const scope of ['openid email', 'email openid']) {
      const { accessToken, claims } = await flow({ scope });
      const expected = { email: expect.any(String), email_verified: true };
      expect(await userinfo(accessToken)).toMatchObject(expected);
      expect(claims).toMatchObject(expected);
    }
  });

  it.each(['address', 'phone', 'profile email address phone'])(
    '10.15 oidcc-scope-address, -phone and -all are skipped, and the request succeeds: %s',
    async (scope) => {
      expect(discovery['scopes_supported']).toEqual(['openid', 'profile', 'email']);
      const { accessToken, claims } = await flow({ scope: `openid ${scope}` });
      expect((await userinfo(accessToken)).sub).toBe(claims.sub);
    },
  );

  it.each<readonly [string, Record<string, string>]>([
    ['oidcc-display-page', { display: 'page' }],
    ['oidcc-display-popup', { display: 'popup' }],
    ['oidcc-max-age-10000', { max_age: '10000' }],
    ['oidcc-ensure-request-with-unknown-parameter-succeeds', { extra: 'foobar' }],
    ['oidcc-login-hint', { login_hint: 'buffy@op.example' }],
    ['oidcc-ui-locales', { ui_locales: 'se' }],
    ['oidcc-claims-locales', { claims_locales: 'se' }],
    [
      'oidcc-ensure-request-with-acr-values-succeeds',
      { acr_values: 'urn:nist:authentication:assurance-level:aal3' },
    ],
  ])('%s', async (_, parameters) => {
    const { accessToken, claims } = await flow(parameters);
    if ('max_age' in parameters) expect(claims['auth_time']).toEqual(expect.any(Number));
    expect((await userinfo(accessToken)).sub).toBe(claims.sub);
  });

  it.each<readonly [string, Record<string, string>]>([
    ['oidcc-prompt-login', { prompt: 'login' }],
    ['oidcc-max-age-1', { max_age: '1' }],
  ])('%s', async (_, parameters) => {
    const browser = app.client();
    const first = await flow({}, browser);
    await app.dataSource.query("UPDATE sessions SET auth_time = auth_time - interval '2 s'");
    const second = await flow(parameters, browser);
    expect(second.claims.sub).toBe(first.claims.sub);
    expect(Number(second.claims['auth_time'])).toBeGreaterThan(
      Number(first.claims['auth_time']) - 2,
    );
  });

  it('oidcc-prompt-none-not-logged-in', async () => {
    const state = 's'.repeat(128);
    const outcome = await go(app.client(), { prompt: 'none', state });
    if (!(outcome instanceof URL)) throw new Error(outcome.text);
    expect([parameterOf(outcome, 'error'), parameterOf(outcome, 'state')]).toEqual([
      'login_required',
      state,
    ]);
  });

  it('oidcc-prompt-none-logged-in, oidcc-id-token-hint', async () => {
    const browser = app.client();
    const first = await flow({}, browser);
    for (const hint of [{}, { id_token_hint: first.idToken }]) {
      const second = await flow({ prompt: 'none', ...hint }, browser);
      expect([second.claims.sub, second.claims['auth_time']]).toEqual([
        first.claims.sub,
        first.claims['auth_time'],
      ]);
    }
  });

  it('10.13 oidcc-codereuse', async () => {
    const url = await arrived(app.client());
    await verified(await redeem(url));
    const again = await redeem(url);
    expect([again.status, again.json.error]).toEqual([400, 'invalid_grant']);
  });

  it('10.13 oidcc-codereuse-30seconds', async () => {
    const url = await arrived(app.client());
    const { accessToken } = await verified(await redeem(url));
    await app.dataSource.query(
      "UPDATE oauth_artifacts SET consumed_at = consumed_at - interval '30 s' WHERE model = 'AuthorizationCode'",
    );
    const again = await redeem(url);
    expect([again.status, again.json.error]).toEqual([400, 'invalid_grant']);
    const headers = { authorization: `Bearer ${accessToken}` };
    expect((await app.client().get('/oauth/userinfo', { headers })).status).toBe(401);
  });

  it('oidcc-ensure-registered-redirect-uri', async () => {
    const outcome = await go(app.client(), { redirect_uri: `${CALLBACK}/another` });
    expect(outcome).toMatchObject({ status: 400, text: expect.stringContaining('<h1>') });
  });

  it('oidcc-ensure-post-request-succeeds', async () => {
    const { claims } = await verified(await redeem(await arrived(app.client(), {}, 'POST')));
    expect(typeof claims.sub).toBe('string');
  });

  it('oidcc-server-client-secret-post', async () => {
    const post = await register({ token_endpoint_auth_method: 'client_secret_post' });
    const url = await arrived(app.client(), { client_id: post.client_id });
    const answer = await postForm(app, '/oauth/token', {
      grant_type: 'authorization_code',
      code: parameterOf(url, 'code'),
      redirect_uri: CALLBACK,
      client_id: post.client_id,
      client_secret: post.client_secret,
    });
    expect([answer.status, typeof answer.json.id_token]).toEqual([200, 'string']);
  });

  it('oidcc-request-uri-unsigned, oidcc-unsigned-request-object and oidcc-ensure-request-object-with-redirect-uri are skipped', () => {
    expect(discovery['request_object_signing_alg_values_supported']).toContain('RS256');
    expect(discovery['request_object_signing_alg_values_supported']).not.toContain('none');
  });

  it('10.26 oidcc-claims-essential', async () => {
    const claims = JSON.stringify({ userinfo: { name: { essential: true } } });
    const tokens = await flow({ claims });
    expect(typeof (await userinfo(tokens.accessToken))['name']).toBe('string');
    expect(tokens.claims).not.toHaveProperty('name');
  });

  it('oidcc-refresh-token is skipped: refresh tokens are neither issued nor offered', async () => {
    const grant_types = ['authorization_code', 'refresh_token'];
    const registered = await register({ grant_types });
    const url = await arrived(app.client(), {
      client_id: registered.client_id,
      scope: 'openid offline_access',
      prompt: 'consent',
    });
    const answer = await postForm(
      app,
      '/oauth/token',
      {
        grant_type: 'authorization_code',
        code: parameterOf(url, 'code'),
        redirect_uri: CALLBACK,
      },
      basic(registered),
    );
    expect([answer.status, answer.json.refresh_token]).toEqual([200, undefined]);
    expect(discovery['grant_types_supported']).not.toContain('refresh_token');
  });

  it('oidcc-ensure-request-with-valid-pkce-succeeds', async () => {
    const { verifier, challenge } = newPkce();
    const pkce = { code_challenge: challenge, code_challenge_method: 'S256' };
    const url = await arrived(app.client(), pkce);
    const { claims } = await verified(await redeem(url, { code_verifier: verifier }));
    expect(typeof claims.sub).toBe('string');
  });

  it('10.15 oidcc-discovery-endpoint-verification (oidcc-config-certification-test-plan)', () => {
    expect(discovery).toMatchObject({
      issuer: app.baseUrl,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      claims_parameter_supported: true,
      request_parameter_supported: true,
      request_uri_parameter_supported: true,
    });
    for (const [name, value] of [
      ['id_token_signing_alg_values_supported', 'RS256'],
      ['request_object_signing_alg_values_supported', 'RS256'],
      ['userinfo_signing_alg_values_supported', 'ES256'],
      ['token_endpoint_auth_signing_alg_values_supported', 'RS256'],
      ['grant_types_supported', 'authorization_code'],
      ['scopes_supported', 'openid'],
      ['claims_supported', 'email_verified'],
    ] as const) {
      expect([name, discovery[name]]).toEqual([name, expect.arrayContaining([value])]);
    }
  });
});
