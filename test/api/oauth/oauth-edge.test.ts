import { request as httpRequest } from 'node:http';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import {
  CALLBACK,
  assertionFields,
  authorize,
  newClientKeys,
  newDpopKey,
  newPkce,
  parameterOf,
  postForm,
  type ClientKeys,
} from '../../support/oauth-flow.js';

const ADA = 'ada@edge.example';
const EVIL = 'evil.example';

const SECURITY_HEADERS = [
  'x-frame-options',
  'x-content-type-options',
  'referrer-policy',
  'permissions-policy',
  'content-security-policy',
  'cross-origin-opener-policy',
  'cache-control',
  'x-fapi-interaction-id',
];

describe('the edge around the OAuth endpoints', () => {
  let app: TestApp;
  let ada: Client;
  let keys: ClientKeys;
  let clientId: string;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled(ADA));
    keys = await newClientKeys();
    ({ clientId } = await addApplication(
      app,
      {
        redirect_uris: [CALLBACK],
        grant_types: ['authorization_code', 'client_credentials'],
        response_types: ['code'],
        token_endpoint_auth_method: 'private_key_jwt',
        jwks: { keys: [keys.jwk] },
      },
      { owner: ADA },
    ));
  });
  afterAll(() => app.close());

  /** Sends an authorization request whose request object (RFC 9101) names a response mode. */
  async function askByObject(
    browser: Client,
    asking: { clientId: string; keys: ClientKeys; redirectUri: string },
    mode: string,
  ): Promise<Answer> {
    const request = await new SignJWT({
      iss: asking.clientId,
      aud: app.baseUrl,
      client_id: asking.clientId,
      response_type: 'code',
      redirect_uri: asking.redirectUri,
      scope: 'openid',
      response_mode: mode,
    })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .sign(asking.keys.privateKey);
    const query = new URLSearchParams({ client_id: asking.clientId, request });
    return browser.get(`/oauth/authorize?${query.toString()}`, { address: newAddress() });
  }

  describe('a poisoned Host header', () => {
    const forged = (base: string): readonly (readonly [string, Record<string, string>])[] => [
      ['X-Forwarded-Host', { 'x-forwarded-host': EVIL }],
      ['X-Forwarded-Proto', { 'x-forwarded-proto': 'gopher' }],
      ['Forwarded', { forwarded: `host=${EVIL};proto=https` }],
      ['X-Original-Host', { 'x-original-host': EVIL, 'x-host': EVIL }],
      ['all of them', { 'x-forwarded-host': `${EVIL}, ${base}`, 'x-forwarded-port': '666' }],
    ];

    it('is refused before any other response', async () => {
      const answer = await rawGet(app, '/.well-known/openid-configuration', { host: EVIL });
      expect(answer.status).toBe(421);
      expect(answer.body).not.toContain('token_endpoint');
    });

    it('changes no address of the discovery document', async () => {
      const honest = await app.client().get('/.well-known/openid-configuration');
      expect(honest.json.token_endpoint).toBe(`${app.baseUrl}/oauth/token`);
      for (const path of ['openid-configuration', 'oauth-authorization-server']) {
        for (const [name, headers] of forged(app.baseUrl)) {
          const answer = await app.client().get(`/.well-known/${path}`, { headers });
          expect([name, answer.json]).toEqual([name, honest.json]);
        }
      }
    });

    it('makes no assertion for another audience acceptable', async () => {
      for (const aud of [
        `http://${EVIL}/oauth/token`,
        `http://${EVIL}`,
        `${app.baseUrl}/oauth/par`,
        [app.baseUrl],
        [`${app.baseUrl}/oauth/token`],
        `${app.baseUrl}/`,
      ]) {
        for (const [name, headers] of forged(app.baseUrl)) {
          const fields = {
            ...(await assertionFields(app, clientId, keys, { aud })),
            grant_type: 'client_credentials',
          };
          const answer = await postForm(app, '/oauth/token', fields, headers);
          expect([name, aud, answer.status]).toEqual([name, aud, 401]);
          expect(answer.json.error).toBe('invalid_client');
        }
      }
    });

    it('makes no proof for another address acceptable, and the true one still is', async () => {
      for (const [name, headers] of forged(app.baseUrl)) {
        const dpop = await newDpopKey();
        const ask = async (htu: string) =>
          postForm(
            app,
            '/oauth/token',
            { ...(await assertionFields(app, clientId, keys)), grant_type: 'client_credentials' },
            { ...headers, dpop: await dpop.proof('POST', htu) },
          );
        const poisoned = await ask(`http://${EVIL}/oauth/token`);
        expect([name, poisoned.json.error]).toEqual([name, 'invalid_dpop_proof']);
        expect([name, (await ask(`${app.baseUrl}/oauth/token`)).status]).toEqual([name, 200]);
      }
    });

    it('changes no address that a device shows', async () => {
      const cli = { client_id: 'svc-cli', scope: 'openid' };
      for (const [name, headers] of forged(app.baseUrl)) {
        const { status, json } = await postForm(app, '/oauth/device', cli, headers);
        expect([name, status, json.verification_uri]).toEqual([name, 200, `${app.baseUrl}/device`]);
        expect(json.verification_uri_complete).toMatch(`${app.baseUrl}/device?user_code=`);
        expect(json.interval).toBe(5);
      }
    });
  });

  it.each(['/OAUTH/TOKEN', '/oauth/token/', '/oAuth/Token/'])(
    '%s has the same limit and the same endpoint as /oauth/token',
    async (path) => {
      const address = newAddress();
      const ask = (to: string) =>
        app.client().send('POST', to, {
          address,
          body: 'grant_type=none',
          headers: { 'content-type': 'application/x-www-form-urlencoded', origin: '' },
        });
      const first = await ask(path);
      expect([first.status, first.json.error]).toEqual([401, 'invalid_client']);
      expect(first.headers.get('x-ratelimit-limit')).toBe('8');
      let refused = first;
      // Sends requests until the refusal announces 2 seconds, so that the next request is certainly
      // refused too.
      while (refused.headers.get('retry-after') !== '2') refused = await ask('/oauth/token');
      const here = await ask(path);
      expect([here.status, here.json.error]).toEqual([429, 'temporarily_unavailable']);
      expect(Number(here.headers.get('retry-after'))).toBeGreaterThan(0);
    },
  );

  it('an error of the library keeps the headers, the limits and the error format', async () => {
    for (const [path, accept] of [
      ['/oauth/token', 'text/html'],
      ['/oauth/par', 'application/json'],
      ['/oauth/introspect', 'text/html,*/*'],
      ['/oauth/revoke', '*/*'],
      ['/oauth/device', 'text/html'],
    ] as const) {
      const answer = await postForm(
        app,
        path,
        { grant_type: 'x' },
        { accept, origin: 'https://a.example' },
      );
      expect([path, answer.status]).toEqual([path, 401]);
      expect(answer.json).toMatchObject({ error: 'invalid_client' });
      for (const header of SECURITY_HEADERS) {
        expect([path, header, answer.headers.get(header)]).toEqual([
          path,
          header,
          expect.any(String),
        ]);
      }
      expect(answer.headers.get('cache-control')).toBe('no-cache, no-store, must-revalidate');
      expect(answer.headers.get('access-control-allow-origin')).toBe('*');
      expect(answer.headers.get('x-ratelimit-limit')).not.toBeNull();
      expect(answer.headers.get('set-cookie')).toBeNull();
    }
  });

  it('an error at the authorization endpoint is a page with every header, which no other origin can read', async () => {
    const answer = await ada.get('/oauth/authorize?client_id=nobody&response_type=code', {
      headers: { origin: 'https://a.example', accept: 'application/json' },
    });
    expect(answer.status).toBe(400);
    expect(answer.headers.get('content-type')).toContain('text/html');
    expect(answer.text).toContain('<code>invalid_client</code>');
    expect(answer.text).not.toContain('client is invalid');
    for (const header of SECURITY_HEADERS) expect(answer.headers.has(header)).toBe(true);
    for (const name of ['allow-origin', 'allow-credentials', 'expose-headers']) {
      expect(answer.headers.get(`access-control-${name}`)).toBeNull();
    }
    expect(answer.headers.get('x-ratelimit-limit')).toBe('20');
  });

  it('an unregistered address gets a page, so that it is no open redirect', async () => {
    const query = new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: 'https://evil.example/callback',
      scope: 'openid',
    });
    const answer = await ada.get(`/oauth/authorize?${query.toString()}`);
    expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
  });

  it('POST leads to the GET, from any origin', async () => {
    const { challenge } = newPkce();
    const answer = await app.client().send('POST', '/oauth/authorize', {
      body: new URLSearchParams({
        client_id: clientId,
        state: 'a b',
        code_challenge: challenge,
      }).toString(),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        origin: 'https://client.example',
      },
    });
    expect(answer.status).toBe(303);
    expect(answer.headers.get('location')).toBe(
      `${app.baseUrl}/oauth/authorize?client_id=${clientId}&state=a+b&code_challenge=${challenge}`,
    );
  });

  it('form_post is refused, with an error response where one is possible', async () => {
    const { challenge } = newPkce();
    const url = await authorize(ada, {
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      response_mode: 'form_post',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    expect(parameterOf(url, 'error')).toBe('unsupported_response_mode');
    expect(parameterOf(url, 'iss')).toBe(app.baseUrl);
  });

  it.each(['form_post', 'form_post.jwt'])(
    '%s in a request object is refused by a redirect, and not by a page of the library',
    async (mode) => {
      const answer = await askByObject(ada, { clientId, keys, redirectUri: CALLBACK }, mode);
      expect(answer.status).toBe(303);
      const url = new URL(answer.headers.get('location') ?? '');
      expect(url.origin + url.pathname).toBe(CALLBACK);
      const expected = mode === 'form_post' ? 'error=invalid_request' : 'response=';
      expect(url.search).toContain(expected);
    },
  );

  it('form_post shows no address of a client that registered itself without consent', async () => {
    const stranger = await newClientKeys();
    const redirectUri = `https://${EVIL}/callback`;
    const registered = await app.client().post('/oauth/register', {
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [stranger.jwk] },
    });
    const theirs = { clientId: registered.json.client_id, keys: stranger, redirectUri };
    const answer = await askByObject(app.client(), theirs, 'form_post');
    expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
    expect(answer.text).not.toContain(EVIL);
  });

  it('bodies beyond the limits are 413, in the error format of OAuth', async () => {
    const answer = await postForm(app, '/oauth/token', { grant_type: 'x'.repeat(300_000) });
    expect([answer.status, answer.json.error]).toEqual([413, 'invalid_request']);
    const legal = await postForm(app, '/oauth/token', { grant_type: 'x'.repeat(100_000) });
    expect([legal.status, legal.json.error]).toEqual([401, 'invalid_client']);
  });

  it('an authorization request may have 64 KiB, and is refused with a page beyond', async () => {
    const send = (length: number) =>
      app.client().send('POST', '/oauth/authorize', {
        body: `state=${'x'.repeat(length - 6)}`,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      });
    expect((await send(10 * 1024)).status).toBe(303);
    const over = await send(64 * 1024 + 1);
    expect([over.status, over.headers.get('content-type')]).toEqual([
      413,
      'text/html; charset=utf-8',
    ]);
  });

  it('another method is 405 with Allow, in the error format of the path', async () => {
    const answer = await app.client().send('DELETE', '/oauth/token', { headers: { origin: '' } });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
    expect(answer.json.error).toBe('invalid_request');
  });

  it('metrics know every route by its template', async () => {
    const metered = await startTestApp({
      environment: { SVC_METRICS_BEARER_TOKEN: 'a token for a scraper' },
    });
    try {
      await postForm(metered, '/oauth/token', { grant_type: 'x' });
      await metered.client().get('/interaction/abc');
      await metered.client().get('/oauth/authorize/some-uid');
      const headers = { authorization: 'Bearer a token for a scraper' };
      const { text } = await metered.client().get('/metrics', { headers });
      expect(text).toMatch(
        /http_requests_total\{method="POST",path="\/oauth\/token",status="401"\} 1/,
      );
      expect(text).toContain('path="/interaction/{uid}",status="404"');
      expect(text).toContain('path="/oauth/authorize/{uid}"');
      expect(text).not.toContain('some-uid');
    } finally {
      await metered.close();
    }
  });
});

/** Sends a GET with any headers, `Host` included, which fetch does not let a caller set. */
function rawGet(
  app: TestApp,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  httpRequest(new URL(path, app.baseUrl), { headers }, (answer) => {
    let body = '';
    answer.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk;
    });
    answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
  })
    .on('error', reject)
    .end();
  return promise;
}
