import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { newPkce, parameterOf } from '../../support/oauth-flow.js';

const LOOPBACKS = ['http://localhost:3000/done', 'http://127.0.0.1/done', 'http://[::1]:8080/done'];
const SCHEME = 'com.example.app:/done';

describe('applications that a user registered', () => {
  let app: TestApp;
  let ada: Client;
  let bob: Client;
  let eve: Client;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled('ada@own.example'));
    ({ client: bob } = await app.enrolled('bob@own.example'));
    ({ client: eve } = await app.enrolled('eve@others.example'));
  });
  afterAll(() => app.close());

  function register(body: object): Promise<Answer> {
    return ada.post('/api/v1/applications', { name: 'Own', ...body }, { address: newAddress() });
  }

  function ask(browser: Client, clientId: string, redirectUri: string): Promise<Answer> {
    const query = new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: redirectUri,
      scope: 'openid',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    });
    return browser.get(`/oauth/authorize?${query.toString()}`, { address: newAddress() });
  }

  /** Returns true if an authorization request gets a code at once, without a consent page. */
  async function isSilent(browser: Client, clientId: string, redirectUri: string) {
    const location = (await ask(browser, clientId, redirectUri)).headers.get('location') ?? '';
    return location.startsWith(redirectUri) && parameterOf(new URL(location), 'code') !== '';
  }

  it.each(['web', 'spa'])('10.26 a %s application may use http on loopback', async (type) => {
    const answer = await register({
      type,
      redirect_uris: LOOPBACKS,
      post_logout_redirect_uris: LOOPBACKS,
    });
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
    for (const uri of LOOPBACKS) {
      expect(await isSilent(ada, answer.json.client_id as string, uri)).toBe(true);
    }
    // The redirect URI must match a registered one exactly, port included. A name that only begins
    // with `localhost` is not loopback.
    const { status } = await ask(
      ada,
      answer.json.client_id as string,
      'http://localhost:3001/done',
    );
    expect(status).toBe(400);
    const elsewhere = await register({ type, redirect_uris: ['http://localhost.example/done'] });
    expect(elsewhere.status).toBe(400);
  });

  it.each(['http://127.0.0.1/done', SCHEME])(
    '10.26 a native application needs no consent of its owner and colleagues, and of other users it does (%s)',
    async (uri) => {
      const { json } = await register({ type: 'native', redirect_uris: [uri] });
      const id = json.client_id as string;
      expect(await isSilent(ada, id, uri)).toBe(true);
      expect(await isSilent(ada, id, uri)).toBe(true);
      expect(await isSilent(bob, id, uri)).toBe(true);
      expect(await isSilent(eve, id, uri)).toBe(false);
    },
  );

  it('10.26 a native client that registered itself needs consent each time', async () => {
    const metadata = {
      application_type: 'native',
      redirect_uris: [SCHEME],
      token_endpoint_auth_method: 'none',
    };
    const { clientId } = await addApplication(app, metadata, { kind: 'dynamic' });
    for (let time = 0; time < 2; time += 1) {
      const interaction = (await ask(ada, clientId, SCHEME)).headers.get('location') ?? '';
      expect(interaction).toMatch(/^\/interaction\//);
      const agreed = await ada.post(`${interaction}/consent`, {}, { address: newAddress() });
      const back = await ada.get(agreed.json.redirect_to as string, { address: newAddress() });
      expect(back.headers.get('location')).toContain('code=');
    }
  });

  it('10.26 http on loopback is excluded from the FAPI profile', async () => {
    const { status, json } = await register({
      type: 'web',
      profile: 'fapi2',
      jwks: { keys: [{}] },
      redirect_uris: ['http://localhost/done'],
    });
    expect([status, json.code]).toEqual([400, 'invalid_request']);
  });
});
