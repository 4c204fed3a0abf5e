import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listGrantsOfSession } from '../../../src/domain/oauth/grants/grants.repository.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { CALLBACK, authorize, newPkce } from '../../support/oauth-flow.js';

const RESOURCE = 'https://payroll.example/';

describe('the consent of a user to a client', () => {
  let app: TestApp;
  let ada: Client;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled('ada@consent.example'));
    await app.enrolled('mallory@consent.example');
  });
  afterAll(() => app.close());

  it('shows requested claims as the scopes that contain them', async () => {
    const { client_id } = await register();
    const claims = { id_token: { email: null }, userinfo: { name: { essential: true } } };
    const page = await consentPage(asked(client_id, { claims: JSON.stringify(claims) }));
    expect(page.text).toContain('See your e-mail address');
    expect(page.text).toContain('See your name');
    const plain = await consentPage(asked(client_id));
    expect(plain.text).not.toContain('See your');
  });

  it('is requested again for more scopes, and not for the same', async () => {
    const { client_id } = await register();
    await authorize(ada, asked(client_id));
    expect(await isSilent(asked(client_id))).toBe(true);
    expect(await isSilent(asked(client_id, { scope: 'openid email' }))).toBe(false);
    const claims = JSON.stringify({ userinfo: { email: null } });
    expect(await isSilent(asked(client_id, { claims }))).toBe(false);
  });

  it('is looked up in the newest 100 grants of the session, so that a loop of sign-ins costs no more', async () => {
    const { client_id } = await register();
    await authorize(ada, asked(client_id, { scope: 'openid email' }));
    await app.dataSource.query(
      `INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, expires_at, created_at)
       SELECT decode(md5(n::text), 'hex'), client_id, user_id, session_id, payload, expires_at, created_at + n * interval '1 s'
       FROM oauth_grants, generate_series(1, 150) n WHERE client_id = $1`,
      [client_id],
    );
    const [{ session_id: sessionId } = { session_id: '' }] = await app.dataSource.query<
      { session_id: string }[]
    >('SELECT session_id FROM oauth_grants WHERE client_id = $1 LIMIT 1', [client_id]);
    const earlier = await listGrantsOfSession(app.dataSource.manager, sessionId, client_id);
    expect(earlier).toHaveLength(100);
    expect(await isSilent(asked(client_id, { scope: 'openid email' }))).toBe(true);
  });

  it('is not forgotten after many token exchanges, whose grants are no consent', async () => {
    const { client_id } = await register();
    await authorize(ada, asked(client_id));
    await app.dataSource.query(
      `INSERT INTO oauth_grants (id, parent_id, client_id, user_id, session_id, payload, expires_at, created_at)
       SELECT decode(md5($1 || n), 'hex'), id, client_id, user_id, session_id,
              jsonb_build_object('openid', jsonb_build_object('scope', 'openid email')), expires_at, created_at + n * interval '1 s'
       FROM oauth_grants, generate_series(1, 100) n WHERE client_id = $1`,
      [client_id],
    );
    expect(await isSilent(asked(client_id))).toBe(true);
    expect(await isSilent(asked(client_id, { scope: 'openid email' }))).toBe(false);
  });

  it('is requested again for another redirect URI, whose host the page did not name', async () => {
    const other = 'https://evil.example/callback';
    const { client_id } = await register({ redirect_uris: [CALLBACK, other] });
    await authorize(ada, asked(client_id));
    expect(await isSilent(asked(client_id))).toBe(true);
    expect(await isSilent(asked(client_id, { redirect_uri: other }))).toBe(false);
    await authorize(ada, asked(client_id, { redirect_uri: other }));
    expect(await isSilent(asked(client_id, { redirect_uri: other }))).toBe(true);
    expect(await isSilent(asked(client_id))).toBe(true);
  });

  it('is requested again when the client changed', async () => {
    const { client_id, registration_access_token } = await register();
    await authorize(ada, asked(client_id));
    const changed = await app.client().send('PUT', `/oauth/register/${client_id}`, {
      address: newAddress(),
      headers: { authorization: `Bearer ${registration_access_token}` },
      body: {
        client_id,
        client_name: 'Evil',
        redirect_uris: [CALLBACK, 'https://evil.example/callback'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    });
    expect(changed.status).toBe(200);
    expect(await isSilent(asked(client_id))).toBe(false);
    const elsewhere = asked(client_id, { redirect_uri: 'https://evil.example/callback' });
    expect(await isSilent(elsewhere)).toBe(false);
  });

  it.each(['constructor', 'toString', '__proto__'])(
    '10.9 shows a scope by its name, also one named like a property of every object: %s',
    async (scope) => {
      const metadata = {
        redirect_uris: [CALLBACK],
        svc_resource_scopes: scope,
        token_endpoint_auth_method: 'client_secret_basic',
      };
      const theirs = await addApplication(app, metadata, { owner: 'mallory@consent.example' });
      const parameters = { resource: RESOURCE, scope: `openid ${scope}` };
      const page = await consentPage(asked(theirs.clientId, parameters));
      expect(page.text).toContain(`<li>${scope}</li>`);
      expect(page.text).not.toMatch(/function|\[object/);
    },
  );

  it('links to the https addresses of the policy and the terms that a client registered, and to no other', async () => {
    const named = await register({
      policy_uri: 'https://good.example/privacy?a=1&b=2',
      tos_uri: 'https://good.example/terms',
    });
    const { text } = await consentPage(asked(named.client_id));
    expect(text).toContain('href="https://good.example/privacy?a=1&amp;b=2" rel="noreferrer"');
    expect(text).toContain('href="https://good.example/terms" rel="noreferrer"');
    const plain = await register({ policy_uri: 'http://good.example/privacy' });
    const shown = await consentPage(asked(plain.client_id));
    expect(shown.text).not.toContain('good.example');
  });

  it('is required where a colleague’s application acts at a resource, and not for the user’s own application', async () => {
    const metadata = {
      redirect_uris: [CALLBACK],
      svc_resource_scopes: 'payroll:admin',
      token_endpoint_auth_method: 'client_secret_basic',
    };
    const theirs = await addApplication(app, metadata, { owner: 'mallory@consent.example' });
    const own = await addApplication(app, metadata, { owner: 'ada@consent.example' });
    const elsewhere = { resource: RESOURCE, scope: 'openid payroll:admin' };
    await authorize(ada, asked(theirs.clientId));
    expect(await isSilent(asked(theirs.clientId))).toBe(true);
    expect(await isSilent(asked(own.clientId, elsewhere))).toBe(true);
    expect(await isSilent(asked(theirs.clientId, elsewhere))).toBe(false);
    const page = await consentPage(asked(theirs.clientId, elsewhere));
    expect(page.text).toContain(`Act for you at ${RESOURCE}`);
    await authorize(ada, asked(theirs.clientId, elsewhere));
    expect(await isSilent(asked(theirs.clientId, elsewhere))).toBe(true);
  });

  it('is accepted only from the requested user, in the same browser', async () => {
    const { client_id } = await register();
    const interaction = await interactionOf(asked(client_id));
    const { client: bob } = await app.enrolled('bob@consent.example');
    const answer = await bob.post(`${interaction}/consent`, {}, { address: newAddress() });
    expect(answer.status).toBe(404);
    await ada.post('/logout', {}, { address: newAddress() });
    const late = await ada.post(`${interaction}/consent`, {}, { address: newAddress() });
    expect(late.status).toBe(404);
    ({ client: ada } = await app.enrolled('ada2@consent.example'));
  });

  async function register(
    more: object = {},
  ): Promise<{ client_id: string; registration_access_token: string }> {
    const { json } = await app.client().post(
      '/oauth/register',
      {
        client_name: 'Good',
        redirect_uris: [CALLBACK],
        token_endpoint_auth_method: 'client_secret_post',
        ...more,
      },
      { address: newAddress() },
    );
    return json as { client_id: string; registration_access_token: string };
  }

  function asked(clientId: string, more: Readonly<Record<string, string>> = {}) {
    return {
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
      ...more,
    };
  }

  /**
   * Returns true if an authorization request with `prompt=none` gets a code, and false if it needs
   * a consent.
   */
  async function isSilent(parameters: Readonly<Record<string, string>>): Promise<boolean> {
    const answer = await ask({ ...parameters, prompt: 'none' });
    // If the user has never consented to the client, the service shows the error on its own page.
    if (answer.status === 400) return false;
    const location = new URL(answer.headers.get('location') ?? '');
    if (location.searchParams.has('code')) return true;
    expect(location.searchParams.get('error')).toBe('consent_required');
    return false;
  }

  async function consentPage(parameters: Readonly<Record<string, string>>): Promise<Answer> {
    const page = await ada.get(await interactionOf(parameters), { address: newAddress() });
    expect(page.status).toBe(200);
    return page;
  }

  async function interactionOf(parameters: Readonly<Record<string, string>>): Promise<string> {
    const location = (await ask(parameters)).headers.get('location') ?? '';
    expect(location).toMatch(/^\/interaction\//);
    return location;
  }

  function ask(parameters: Readonly<Record<string, string>>): Promise<Answer> {
    const query = new URLSearchParams(parameters).toString();
    return ada.get(`/oauth/authorize?${query}`, { address: newAddress() });
  }
});
