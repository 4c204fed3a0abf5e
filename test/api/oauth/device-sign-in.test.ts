import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { startFakeIdp } from '../../support/fake-idp.js';
import { postForm } from '../../support/oauth-flow.js';

describe('the sign-in page of /device for a browser without a session', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  async function newUserCode(of = app): Promise<string> {
    const { json } = await postForm(of, '/oauth/device', { client_id: 'svc-cli' });
    return json.user_code as string;
  }

  function send(browser: Client, fields: Readonly<Record<string, string>>): Promise<Answer> {
    return browser.send('POST', '/device', {
      address: newAddress(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields).toString(),
    });
  }

  const locationOf = (answer: Answer, base: string) => {
    expect(answer.status).toBe(303);
    return new URL(answer.headers.get('location') ?? '', base);
  };

  it('10.words is the only identity provider, at once, and leads back to the code', async () => {
    const { key } = await app.enrolled('ada@television.example');
    const userCode = await newUserCode();
    const browser = app.client();
    const upstream = locationOf(await send(browser, { user_code: userCode }), app.baseUrl);
    expect(upstream.origin).not.toBe(app.baseUrl);
    expect(upstream.searchParams.get('client_id')).toBe('svc');

    upstream.searchParams.set('login_hint', 'ada@television.example');
    const signedIn = await browser.follow(upstream.href);
    expect(signedIn.url.pathname).toBe('/login');
    const done = await browser.logIn(key);
    expect(done.status).toBe(200);
    const page = await send(browser, { user_code: userCode });
    expect([page.status, page.text.includes('Approve a device')]).toEqual([200, true]);
  });

  it('10.words is the login page for the security key, where the user chose that', async () => {
    const userCode = await newUserCode();
    const chosen = await send(app.client(), { user_code: userCode, sign_in: 'key' });
    const login = locationOf(chosen, app.baseUrl);
    expect([login.pathname, login.searchParams.get('redirect_to')]).toEqual([
      '/login',
      `/device?user_code=${userCode}`,
    ]);
    expect(login.searchParams.get('way')).toBe('key');
    const { text } = await app.client().get(login.pathname + login.search);
    const [before = '', other = ''] = text.split('<details');
    expect([before.includes('Continue with'), other.includes('Continue with')]).toEqual([
      false,
      true,
    ]);
  });

  it('10.words is the key step of the login, for a user who is signed in upstream', async () => {
    const browser = app.client();
    await app.enrolled('eve@television.example');
    await browser.signIn('eve@television.example');
    const next = locationOf(await send(browser, { user_code: await newUserCode() }), app.baseUrl);
    expect([next.origin, next.pathname]).toEqual([app.baseUrl, '/login']);
  });

  it('10.words offers a button for each of several providers', async () => {
    const other = await startFakeIdp();
    onTestFinished(() => other.close());
    const several = await startTestApp({
      environment: {
        SVC_IDPS: 'demo,other',
        SVC_IDP_OTHER_TYPE: 'oidc',
        SVC_IDP_OTHER_ISSUER: other.issuer,
        SVC_IDP_OTHER_CLIENT_ID: other.clientId,
        SVC_IDP_OTHER_CLIENT_SECRET: other.clientSecret,
      },
    });
    onTestFinished(() => several.close());
    const { text } = await several.client().get('/device');
    expect(text).toContain('name="provider" value="demo"');
    expect(text).toContain('name="provider" value="other"');
    expect(text).toContain('name="sign_in" value="key"');

    const userCode = await newUserCode(several);
    const chosen = await send(several.client(), { user_code: userCode, provider: 'other' });
    expect(locationOf(chosen, several.baseUrl).origin).toBe(new URL(other.issuer).origin);
    const undecided = await send(several.client(), { user_code: userCode });
    expect(locationOf(undecided, several.baseUrl).pathname).toBe('/login');
    const unknown = await send(several.client(), { user_code: userCode, provider: 'nobody' });
    expect(unknown.status).toBe(404);
  });

  it('10.words offers no choice to a browser that has a session', async () => {
    const { client } = await app.enrolled('bob@television.example');
    const { text } = await client.get('/device', { address: newAddress() });
    expect(text).not.toContain('name="provider"');
    expect(text).not.toContain('name="sign_in"');
  });
});
