import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '../../src/demo/identity-provider/identity-provider.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { Client } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { requires } from '../support/programs.js';
import { TEST_CLIENT } from '../support/provider-environment.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

requires('curl').describe('the runbook of an identity provider that is away', () => {
  let idp: DemoIdentityProvider;
  let app: TestApp;
  let ada: EnrolledUser;
  let environment: Record<string, string>;
  beforeAll(async () => {
    const baseUrl = `http://localhost:${await freePort()}`;
    idp = await startDemoIdentityProvider({
      ...TEST_CLIENT,
      redirectUri: `${baseUrl}/oauth/callback`,
    });
    environment = {
      SVC_BASE_URL: baseUrl,
      SVC_LISTEN_ADDR: `127.0.0.1:${new URL(baseUrl).port}`,
      SVC_IDP_DEMO_ISSUER: idp.issuer,
    };
    app = await startTestApp({ environment });
    const client = new Client(baseUrl);
    const key = app.newKey();
    await client.signIn('ada@runbooks.example');
    await client.enroll(key);
    ada = { client, key };
  });
  afterAll(() => app.close());

  const askProvider = () =>
    runToSuccess(guideBlock('runbooks/provider-away.md', 'provider-document'), {
      env: { ISSUER: idp.issuer },
    });

  it('the command shows the issuer while the provider answers, and fails when it is away', async () => {
    expect(await askProvider()).toContain(`"issuer":"${idp.issuer}"`);
    await idp.close();
    await expect(askProvider()).rejects.toThrow(/status/);
  });

  it('users with a key log in and get certificates, and a new sign-in ends with an error', async () => {
    expect((await ada.client.logIn(ada.key)).status).toBe(200);
    const issued = await ada.client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    expect(issued.status).toBe(200);
    const redirect = await ada.client.get('/login?provider=demo');
    const state = new URL(redirect.headers.get('location') ?? '').searchParams.get('state') ?? '';
    const query = new URLSearchParams({ state, code: 'x', iss: idp.issuer }).toString();
    const back = await ada.client.get(`/oauth/callback?${query}`);
    expect(back.status).toBeGreaterThanOrEqual(400);
  });

  it('a service that is started meanwhile does not start', async () => {
    const port = await freePort();
    const other = {
      ...environment,
      SVC_BASE_URL: `http://localhost:${port}`,
      SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
    };
    await expect(startTestApp({ environment: other })).rejects.toThrow(/discovery failed/);
  });
});

requires('curl').describe('the runbook of a mass lock-out', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('the look from outside shows health, readiness, the base URL and two clocks that agree', async () => {
    const printed = await runToSuccess(
      guideBlock('runbooks/mass-lock-out.md', 'outside', {
        'https://login.example.com': app.baseUrl,
      }),
    );
    const [health, ready, issuer, theirs = '', ours = ''] = printed.trim().split(/\r?\n/);
    expect(health).toBe('200');
    expect(ready).toBe('{"status":"ready"}');
    expect(issuer).toBe(`"issuer":"${app.baseUrl}"`);
    const seconds = Math.abs(Date.parse(theirs.slice('date:'.length)) - Date.parse(ours)) / 1000;
    expect(seconds).toBeLessThan(30);
  });
});
