import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KeyAuthentication } from '../../src/domain/sign-in/key-authentication/key-authentication.service.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { addApplication, claimsOf, type Application } from '../support/applications.js';
import type { Answer, Client } from '../support/client.js';
import { createTestDatabase } from '../support/database.js';
import { CALLBACK, newPkce, postForm } from '../support/oauth-flow.js';
import { auditOf, count } from '../support/rows.js';

const TOKEN = 'a token that only the conformance suite knows';
const PATHS = ['/certification/complete-login', '/certification/deny-login'];
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

describe('certification test mode', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({
      environment: { SVC_CERTIFICATION_TEST_TOKEN: TOKEN, SVC_IDPS: '' },
    });
  });
  afterAll(() => app.close());

  it('starts without an identity provider', () => {
    expect(app.config.upstream.providers).toEqual([]);
  });

  it('has no rate limits', async () => {
    const client = app.client();
    for (let request = 0; request < 30; request += 1) {
      const answer = await client.post('/login/webauthn/start', {});
      expect([answer.status, answer.headers.get('x-ratelimit-limit')]).toEqual([200, '20']);
    }
  });

  it.each(PATHS)('refuses %s without the token of the mode', async (path) => {
    const client = app.client();
    for (const headers of [
      {},
      { authorization: 'Bearer something else' },
      { authorization: `Basic ${TOKEN}` },
      { authorization: `Bearer ${TOKEN.slice(1)}` },
    ] as Record<string, string>[]) {
      const answer = await client.post(path, undefined, { headers });
      expect([answer.status, answer.json.code]).toEqual([401, 'unauthenticated']);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    }
    const body = new URLSearchParams({ token: 'something else' }).toString();
    expect((await client.post(path, body, { headers: FORM })).status).toBe(401);
    const inQuery = `${path}?${new URLSearchParams({ token: TOKEN }).toString()}`;
    expect((await client.post(inQuery)).status).toBe(401);
  });

  it.each(PATHS)('%s reports that no authorization waits', async (path) => {
    const client = app.client();
    const body = new URLSearchParams({ token: TOKEN }).toString();
    for (const answer of [
      await client.post(path, undefined, { headers: { authorization: `Bearer ${TOKEN}` } }),
      await client.post(path, body, { headers: FORM }),
    ]) {
      expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
  });

  it.each(PATHS)(
    '%s is not a page: a link does not open it, with or without the token',
    async (path) => {
      for (const headers of [{}, { authorization: `Bearer ${TOKEN}` }] as Record<
        string,
        string
      >[]) {
        const answer = await app.client().get(path, { headers });
        expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
      }
    },
  );

  it.each(PATHS)('%s refuses a repeated token parameter', async (path) => {
    const body = `token=${encodeURIComponent(TOKEN)}&token=x`;
    const answer = await app.client().post(path, body, { headers: FORM });
    expect(answer.status).toBe(400);
    expect(answer.text).not.toContain(TOKEN);
  });
});

describe('an authorization that waits for a login in certification test mode', () => {
  let app: TestApp;
  let client: Application;
  beforeAll(async () => {
    app = await startTestApp({
      environment: { SVC_CERTIFICATION_TEST_TOKEN: TOKEN, SVC_IDPS: '' },
    });
    // The client registered itself. Outside certification test mode, a user must consent to such a
    // client.
    client = await addApplication(
      app,
      {
        redirect_uris: [CALLBACK],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_post',
      },
      { kind: 'dynamic' },
    );
  });
  afterAll(() => app.close());

  const decide = (
    browser: Client,
    path: string,
    fields: Record<string, string>,
    accept = 'application/json',
  ) =>
    browser.send('POST', path, {
      body: new URLSearchParams({ token: TOKEN, ...fields }).toString(),
      headers: { ...FORM, accept },
    });
  /**
   * Starts an authorization request in a browser. Returns its login page, the PKCE verifier and the
   * id of the interaction.
   */
  const authorize = async (browser: Client, parameters: Record<string, string> = {}) => {
    const { verifier, challenge } = newPkce();
    const query = new URLSearchParams({
      client_id: client.clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email',
      state: 'xyz',
      code_challenge: challenge,
      code_challenge_method: 'S256',
      ...parameters,
    });
    const page = await browser.follow(`/oauth/authorize?${query.toString()}`);
    return { page, verifier, interaction: page.url.searchParams.get('interaction') ?? '' };
  };
  /** Opens a path, and returns the query of the callback URL to which the answer redirects. */
  const callbackOf = async (browser: Client, next: string) => {
    const answer = await browser.get(next);
    const location = answer.headers.get('location') ?? '';
    expect([answer.status, location]).toEqual([303, expect.stringContaining(CALLBACK)]);
    return new URL(location).searchParams;
  };
  const redeem = (code: string, verifier: string) =>
    postForm(app, '/oauth/token', {
      grant_type: 'authorization_code',
      code,
      redirect_uri: CALLBACK,
      code_verifier: verifier,
      client_id: client.clientId,
      client_secret: client.clientSecret,
    });
  const introspect = async (token: string) =>
    (
      await postForm(app, '/oauth/introspect', {
        token,
        client_id: client.clientId,
        client_secret: client.clientSecret,
      })
    ).json;
  const refusalOf = ({ status, json }: Answer) => [status, json.code];

  it('is completed by a form of the login page: tokens with hardware_verified: false, and no consent', async () => {
    const browser = app.client();
    const { page, verifier, interaction } = await authorize(browser);
    expect(page.url.pathname).toBe('/login');
    for (const path of PATHS) expect(page.text).toContain(`action="${path}"`);
    expect(page.text).toContain(`name="interaction" value="${interaction}"`);
    const onward = await decide(
      browser,
      '/certification/complete-login',
      { interaction },
      'text/html',
    );
    expect(onward.status).toBe(200);
    const [, next] = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(onward.text) ?? [];
    expect(next).toMatch(new RegExp(`^${app.baseUrl}/oauth/authorize/`));
    const parameters = await callbackOf(browser, next ?? '');
    expect([parameters.get('state'), parameters.get('iss')]).toEqual(['xyz', app.baseUrl]);

    const { json: tokens } = await redeem(parameters.get('code') ?? '', verifier);
    const claims = claimsOf(tokens.id_token);
    expect(claims).toMatchObject({ hardware_verified: false, auth_time: expect.any(Number) });
    for (const unproven of ['hardware_aaguid', 'acr']) expect(claims).not.toHaveProperty(unproven);
    expect(claims['amr'] ?? []).toEqual([]);
    const introspected = await introspect(tokens.access_token);
    expect(introspected).toMatchObject({
      active: true,
      hardware_verified: false,
      email: 'certification@svc.invalid',
    });
    const audit = await auditOf(app.dataSource, 'certification@svc.invalid');
    expect(audit[0]).toMatchObject({ type: 'login_success', details: { synthetic: true } });
  });

  it('is completed again when the client requests another login', async () => {
    const browser = app.client();
    const first = await authorize(browser);
    const answer = await decide(browser, '/certification/complete-login', {
      interaction: first.interaction,
    });
    await callbackOf(browser, answer.json.redirect_to);
    const silent = await browser.get(
      `/oauth/authorize?${new URLSearchParams({ client_id: client.clientId, response_type: 'code', redirect_uri: CALLBACK, scope: 'openid', prompt: 'none', nonce: 'n' }).toString()}`,
    );
    expect(silent.headers.get('location')).toContain('code=');
    await app.dataSource.query("UPDATE sessions SET auth_time = auth_time - interval '10 s'");
    const again = await authorize(browser, { prompt: 'login consent' });
    expect(again.page.url.pathname).toBe('/login');
    const completed = await decide(browser, '/certification/complete-login', {
      interaction: again.interaction,
    });
    const parameters = await callbackOf(browser, completed.json.redirect_to);
    expect((await redeem(parameters.get('code') ?? '', again.verifier)).status).toBe(200);
  });

  it('is denied: the client receives access_denied', async () => {
    const browser = app.client();
    const { interaction } = await authorize(browser);
    const answer = await decide(browser, '/certification/deny-login', { interaction });
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([200, []]);
    const parameters = await callbackOf(browser, answer.json.redirect_to);
    expect(parameters.get('error')).toBe('access_denied');
    expect(parameters.get('code')).toBeNull();
  });

  it('gives no access to the service: neither its cookie nor its tokens do', async () => {
    const browser = app.client();
    const { interaction, verifier } = await authorize(browser);
    const answer = await decide(browser, '/certification/complete-login', { interaction });
    const parameters = await callbackOf(browser, answer.json.redirect_to);
    const { json: tokens } = await redeem(parameters.get('code') ?? '', verifier);
    expect(browser.cookie('svc_session')).toBeDefined();
    expect(refusalOf(await browser.get('/v1/keys'))).toEqual([401, 'unauthenticated']);
    for (const token of [tokens.access_token, browser.cookie('svc_session')]) {
      const headers = { authorization: `Bearer ${token}` };
      expect(refusalOf(await app.client().get('/v1/keys', { headers }))).toEqual([
        401,
        'unauthenticated',
      ]);
    }
    const ssh = await browser.post('/v1/credentials/ssh', { public_key: 'ssh-ed25519 AAAA' });
    expect(refusalOf(ssh)).toEqual([401, 'unauthenticated']);
    expect(refusalOf(await browser.post('/enroll/webauthn/start', {}))).toEqual([
      401,
      'unauthenticated',
    ]);
  });

  it('cannot be completed without the token of the mode, and nothing changes', async () => {
    const browser = app.client();
    const { interaction } = await authorize(browser);
    const sessions = await count(app.dataSource, 'sessions');
    for (const path of PATHS) {
      const answer = await decide(browser, path, { interaction, token: 'something else' });
      expect(refusalOf(answer)).toEqual([401, 'unauthenticated']);
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
    expect(await count(app.dataSource, 'sessions')).toBe(sessions);
    expect((await browser.get(`/interaction/${interaction}`)).headers.get('location')).toContain(
      '/login',
    );
  });

  it.each(PATHS)('%s cannot complete an unknown interaction', async (path) => {
    const answer = await decide(app.client(), path, { interaction: 'unknown' });
    expect([refusalOf(answer), answer.headers.getSetCookie()]).toEqual([[404, 'not_found'], []]);
    const device = await decide(app.client(), path, { user_code: 'BBBB-BBBB' });
    expect([refusalOf(device), device.headers.getSetCookie()]).toEqual([[404, 'not_found'], []]);
  });

  it('creates one user for any number of concurrent logins', async () => {
    const browsers = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const browser = app.client();
        return { browser, interaction: (await authorize(browser)).interaction };
      }),
    );
    const answers = await Promise.all(
      browsers.map(({ browser, interaction }) =>
        decide(browser, '/certification/complete-login', { interaction }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(await count(app.dataSource, "users WHERE email = 'certification@svc.invalid'")).toBe(1);
  });

  describe('a device that waits in certification test mode', () => {
    const grantType = 'urn:ietf:params:oauth:grant-type:device_code';
    let clientId: string;
    beforeAll(async () => {
      const metadata = {
        token_endpoint_auth_method: 'none',
        grant_types: [grantType],
        response_types: [],
        redirect_uris: [],
      };
      ({ clientId } = await addApplication(app, metadata, { kind: 'first-party' }));
    });
    const newCodes = async () => {
      const answer = await postForm(app, '/oauth/device', { client_id: clientId, scope: 'openid' });
      return answer.json as { device_code: string; user_code: string };
    };
    const poll = ({ device_code }: { device_code: string }) =>
      postForm(app, '/oauth/token', { grant_type: grantType, device_code, client_id: clientId });

    it('is approved, by a session without a key', async () => {
      const codes = await newCodes();
      const answer = await decide(app.client(), '/certification/complete-login', codes);
      expect([answer.status, answer.json]).toEqual([200, { redirect_to: `${app.baseUrl}/device` }]);
      expect(claimsOf((await poll(codes)).json.id_token)).toMatchObject({
        hardware_verified: false,
      });
    });

    it('is denied', async () => {
      const codes = await newCodes();
      const answer = await decide(app.client(), '/certification/deny-login', codes);
      expect(answer.status).toBe(200);
      expect((await poll(codes)).json.error).toBe('access_denied');
    });

    it('10.words is found after any number of wrong codes: the lockout is off, too', async () => {
      const codes = await newCodes();
      const browser = app.client();
      await decide(browser, '/certification/complete-login', await newCodes());
      for (let n = 0; n < 7; n += 1) {
        const wrong = await browser.post('/device/approve', { user_code: 'BBBB-BBBB' });
        expect(wrong.status).toBe(404);
      }
      const approved = await browser.post('/device/approve', { user_code: codes.user_code });
      expect(approved.json).toEqual({ status: 'approved' });
    });

    it('sees its login page with the code, and is approved on its page without a touch', async () => {
      const { user_code } = await newCodes();
      const browser = app.client();
      const show = () =>
        browser.send('POST', '/device', {
          body: new URLSearchParams({ user_code }).toString(),
          headers: FORM,
        });
      const login = await browser.get((await show()).headers.get('location') ?? '');
      expect(login.text).toContain(`name="user_code" value="${user_code}"`);
      await decide(browser, '/certification/complete-login', await newCodes());
      await app.dataSource.query("UPDATE sessions SET auth_time = now() - interval '1 h'");
      expect((await show()).text).toContain(user_code);
      const approved = await browser.post('/device/approve', { user_code });
      expect(approved.json).toEqual({ status: 'approved' });
    });
  });
});

describe('without certification test mode', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it.each(PATHS)('%s does not exist', async (path) => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    expect((await app.client().post(path, undefined, { headers })).status).toBe(404);
  });

  it('a session from the mode is deleted, with everything that depends on it', async () => {
    const database = await createTestDatabase();
    const { privateKey } = generateKeyPairSync('ed25519');
    const SVC_SSH_CA_KEY = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const before = await startTestApp({
      database,
      environment: { SVC_SSH_CA_KEY, SVC_CERTIFICATION_TEST_TOKEN: TOKEN },
    });
    await before.nest
      .get(KeyAuthentication, { strict: false })
      .logInSynthetic({ requestId: randomUUID(), ip: undefined, userAgent: undefined });
    expect(await count(before.dataSource, 'sessions')).toBe(1);
    await before.close();
    const after = await startTestApp({ database, environment: { SVC_SSH_CA_KEY } });
    expect(await count(after.dataSource, 'sessions')).toBe(0);
    await after.close();
    await database.drop();
  });

  it('the login page offers only a login', async () => {
    const page = await app.client().get('/login?interaction=x&user_code=BBBB-BBBB');
    expect([page.status, page.text.includes('certification')]).toEqual([200, false]);
  });
});
