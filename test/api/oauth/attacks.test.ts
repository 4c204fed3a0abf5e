import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import {
  CALLBACK,
  ath,
  authorize,
  newDpopKey,
  newPkce,
  parameterOf,
  postForm,
  type DpopKey,
} from '../../support/oauth-flow.js';
import { count } from '../../support/rows.js';

const VICTIM = 'victim@attacks.example';

/** Routes of the service's own APIs, which a token of the attacker must not open. */
const OUR_APIS = [
  ['POST', '/v1/credentials/ssh'],
  ['GET', '/v1/keys'],
  ['GET', '/api/v1/org/scim-tokens'],
  ['GET', '/api/v1/applications'],
  ['POST', '/api/v1/applications'],
] as const;

describe('a client that registers itself, and a victim who consents', () => {
  let app: TestApp;
  let victim: Client;
  let attacker: { client_id: string; client_secret: string };
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: victim } = await app.enrolled(VICTIM)); // as the first user, the victim is the admin
    const registered = await app.client().post('/oauth/register', {
      client_name: 'Harmless',
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'client_secret_post',
      grant_types: [
        'authorization_code',
        'client_credentials',
        'urn:ietf:params:oauth:grant-type:device_code',
        'urn:svc:params:oauth:grant-type:fido2',
      ],
      scope: 'openid email svc:credentials svc:admin',
      svc_kind: 'first-party',
      svc_profile: 'fapi2',
      svc_org: 'mine',
      svc_resource_scopes: 'svc:admin',
    });
    if (registered.status !== 201) throw new Error(`not registered: ${registered.text}`);
    attacker = registered.json;
  });
  afterAll(() => app.close());

  async function stolenToken(scope: string, extra: Record<string, string> = {}, dpop?: DpopKey) {
    const { verifier, challenge } = newPkce();
    const url = await authorize(victim, {
      client_id: attacker.client_id,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope,
      code_challenge: challenge,
      code_challenge_method: 'S256',
      ...extra,
    });
    if (url.searchParams.has('error')) return parameterOf(url, 'error');
    const answer = await postForm(
      app,
      '/oauth/token',
      {
        grant_type: 'authorization_code',
        ...attacker,
        client_id: attacker.client_id,
        client_secret: attacker.client_secret,
        code: parameterOf(url, 'code'),
        code_verifier: verifier,
        redirect_uri: CALLBACK,
        ...extra,
      },
      dpop ? { dpop: await dpop.proof('POST', `${app.baseUrl}/oauth/token`) } : {},
    );
    expect(answer.status).toBe(200);
    return answer.json.access_token as string;
  }

  it('gets only authorization codes, and no access to the service', () => {
    expect(attacker).toMatchObject({ grant_types: ['authorization_code'], scope: 'openid email' });
    for (const name of ['svc_kind', 'svc_profile', 'svc_org', 'svc_resource_scopes']) {
      expect(attacker).not.toHaveProperty(name);
    }
  });

  it.each([
    'svc:credentials',
    'openid svc:admin',
    'openid svc:applications',
    'openid svc:anything',
  ])('is refused or not granted the scope %s', async (scope) => {
    const outcome = await stolenToken(scope).catch((error: Error) => error.message);
    // The victim has not consented yet: the service then shows an error as a page with status 400,
    // and does not redirect to the client.
    if (outcome.includes('answered 400')) return;
    if (outcome === 'invalid_scope') return;
    const { json } = await postForm(app, '/oauth/introspect', { token: outcome, ...credentials() });
    expect(json).toMatchObject({ active: true, scope: 'openid' });
  });

  const credentials = () => ({
    client_id: attacker.client_id,
    client_secret: attacker.client_secret,
  });

  it('opens no API with the token, in any scheme, nor in the cookie', async () => {
    const dpop = await newDpopKey();
    const tokens = {
      opaque: await stolenToken('openid email'),
      bound: await stolenToken('openid email', {}, dpop),
      jwt: await stolenToken('openid email', { resource: 'https://orders.example/' }),
    };
    for (const [kind, token] of Object.entries(tokens)) {
      for (const [method, path] of OUR_APIS) {
        const url = `${app.baseUrl}${path}`;
        const proof = await dpop.proof(method, url, { ath: ath(token) });
        const attempts: Record<string, Record<string, string>> = {
          bearer: { authorization: `Bearer ${token}` },
          dpop: { authorization: `DPoP ${token}`, dpop: proof },
          'dpop without proof': { authorization: `DPoP ${token}` },
          cookie: { cookie: `svc_session=${token}` },
          'cookie and header': { cookie: `svc_session=${token}`, authorization: `Bearer ${token}` },
        };
        for (const [scheme, headers] of Object.entries(attempts)) {
          const answer: Answer = await app.client().send(method, path, {
            address: newAddress(),
            headers,
            ...(method === 'POST' ? { body: {} } : {}),
          });
          const of = `${kind} ${scheme} ${method} ${path}`;
          expect([of, [401, 404].includes(answer.status)]).toEqual([of, true]);
        }
      }
    }
    expect(await count(app.dataSource, 'ssh_certificates')).toBe(0);
    expect(await count(app.dataSource, "audit_events WHERE type = 'oauth_secret_added'")).toBe(0);
  });

  it('cannot name the service’s own address as the resource of a token', async () => {
    for (const resource of [app.baseUrl, `${app.baseUrl}/`, `${app.baseUrl}/v1/credentials`]) {
      expect(await stolenToken('openid', { resource })).toBe('invalid_target');
    }
  });

  it('learns nothing about tokens of other clients, and revokes none', async () => {
    const other = await addApplication(
      app,
      { redirect_uris: [], grant_types: ['client_credentials'], response_types: [] },
      { owner: VICTIM },
    );
    const basic = {
      authorization: `Basic ${Buffer.from(`${other.clientId}:${other.clientSecret}`).toString('base64')}`,
    };
    const issued = await postForm(app, '/oauth/token', { grant_type: 'client_credentials' }, basic);
    const token = issued.json.access_token as string;
    const spied = await postForm(app, '/oauth/introspect', { token, ...credentials() });
    expect(spied.json).toEqual({ active: false });
    await postForm(app, '/oauth/revoke', { token, ...credentials() });
    const own = await postForm(app, '/oauth/introspect', { token }, basic);
    expect(own.json.active).toBe(true);
  });

  it('cannot read its secret again, nor authenticate with a hash of it', async () => {
    const { registration_access_token: access } = attacker as unknown as Record<string, string>;
    const headers = { authorization: `Bearer ${access}` };
    const read = await app.client().get(`/oauth/register/${attacker.client_id}`, { headers });
    expect(read.status).toBe(200);
    expect(read.text).not.toContain('client_secret"');
    const [row] = await app.dataSource.query<{ hash: Buffer }[]>(
      'SELECT hash FROM oauth_client_secrets WHERE client_id = $1',
      [attacker.client_id],
    );
    for (const encoding of ['base64url', 'hex', 'base64'] as const) {
      const answer = await postForm(app, '/oauth/introspect', {
        token: 'x',
        client_id: attacker.client_id,
        client_secret: row?.hash.toString(encoding) ?? '',
      });
      expect([encoding, answer.json.error]).toEqual([encoding, 'invalid_client']);
    }
  });

  it('cannot make the victim’s browser consent to an interaction of the attacker', async () => {
    // The attacker begins an authorization, and sends its page to the victim, who is logged in.
    const thief = app.client();
    const query = new URLSearchParams({
      client_id: attacker.client_id,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    });
    const begun = await thief.get(`/oauth/authorize?${query.toString()}`);
    const page = begun.headers.get('location') ?? '';
    expect(page).toMatch(/^\/interaction\//);
    expect((await victim.get(page)).status).toBe(404);
    expect((await victim.post(`${page}/consent`, {})).status).toBe(404);
    const back = await thief.get(page.replace('/interaction/', '/oauth/authorize/'));
    expect(back.headers.get('location') ?? '').not.toContain('code=');
  });

  it('cannot send a consent from its own page', async () => {
    const browser = (await app.enrolled('careful@attacks.example')).client;
    const query = new URLSearchParams({
      client_id: attacker.client_id,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    });
    const begun = await browser.get(`/oauth/authorize?${query.toString()}`);
    const page = begun.headers.get('location') ?? '';
    for (const origin of ['https://evil.example', 'null', '']) {
      const answer = await browser.post(`${page}/consent`, {}, { headers: { origin } });
      expect([origin, answer.status, answer.json.code]).toEqual([origin, 403, 'invalid_origin']);
    }
    const denied = await browser.post(`${page}/deny`, {});
    const back = await browser.get(denied.json.redirect_to as string);
    expect([back.status, back.headers.get('location')]).toEqual([400, null]);
  });
});

describe('a session that is only signed in upstream', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('gets no code: neither before a key is enrolled nor after, until the key is used', async () => {
    const { key } = await app.enrolled('boot@attacks.example');
    const { clientId } = await addApplication(
      app,
      { redirect_uris: [CALLBACK], grant_types: ['authorization_code'], response_types: ['code'] },
      { owner: 'boot@attacks.example' },
    );
    const browser = app.client();
    // signIn alone opens a bootstrap session: the user has a key, but has not used it
    await browser.signIn('boot@attacks.example');
    const parameters = {
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    };
    const asked = await browser.get(
      `/oauth/authorize?${new URLSearchParams(parameters).toString()}`,
    );
    const page = asked.headers.get('location') ?? '';
    expect(page).toMatch(/^\/interaction\//);
    const led = await browser.get(page);
    expect(led.headers.get('location')).toMatch(/^\/login\?redirect_to=/);
    const resumed = await browser.get(page.replace('/interaction/', '/oauth/authorize/'));
    expect(resumed.headers.get('location') ?? '').not.toContain('code=');
    const silent = await browser.get(
      `/oauth/authorize?${new URLSearchParams({ ...parameters, prompt: 'none' }).toString()}`,
    );
    expect(parameterOf(new URL(silent.headers.get('location') ?? ''), 'error')).toBe(
      'login_required',
    );
    expect(await count(app.dataSource, 'oauth_grants')).toBe(0);

    expect((await browser.logIn(key)).status).toBe(200);
    const url = await authorize(browser, parameters);
    expect(parameterOf(url, 'code')).not.toBe('');
  });
});
