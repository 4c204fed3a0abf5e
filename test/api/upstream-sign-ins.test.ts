import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Client } from '../support/client.js';
import { startFakeIdp, type FakeIdp } from '../support/fake-idp.js';
import { count, rows } from '../support/rows.js';

interface LoggedSignIn {
  readonly type: string;
  readonly class: string;
  readonly actor_id: string | null;
  readonly subject_id: string | null;
  readonly org_id: string | null;
  readonly details: Record<string, unknown>;
}

describe('sign-ins at an upstream provider', () => {
  let app: TestApp;
  let fake: FakeIdp;
  /**
   * The claims that the demo's provider sends for a user in place of the usual ones, by the user's
   * e-mail address.
   */
  const says = new Map<string, object>();
  beforeAll(async () => {
    fake = await startFakeIdp();
    app = await startTestApp({
      environment: {
        SVC_IDPS: 'demo,fake',
        SVC_IDP_FAKE_TYPE: 'oidc',
        SVC_IDP_FAKE_ISSUER: fake.issuer,
        SVC_IDP_FAKE_CLIENT_ID: fake.clientId,
        SVC_IDP_FAKE_CLIENT_SECRET: fake.clientSecret,
      },
      claims: (email) => says.get(email) ?? {},
    });
  });
  afterAll(async () => {
    await app.close();
    await fake.close();
  });

  const logged = (where: string, parameters: unknown[]) =>
    rows<LoggedSignIn>(
      app.dataSource,
      `SELECT type, class, actor_id, subject_id, org_id, details FROM audit_events
       WHERE type LIKE 'upstream_login%' AND ${where} ORDER BY id`,
      parameters,
    );
  /**
   * Begins a sign-in at the fake provider, which redirects back with an error. Returns the client.
   */
  async function comesBackWith(error: string, description: string): Promise<Client> {
    fake.misbehaviour = {
      callback: (parameters) => {
        parameters.delete('code');
        parameters.set('error', error);
        parameters.set('error_description', description);
      },
    };
    const client = app.client();
    const page = await client.follow('/login?provider=fake');
    expect(page.status).toBe(400);
    expect(page.text).not.toMatch(/AADSTS|forged/);
    return client;
  }
  const userOf = async (email: string) =>
    (
      await rows<{ id: string; org_id: string }>(
        app.dataSource,
        'SELECT id, org_id FROM users WHERE email = $1',
        [email],
      )
    )[0];

  it('10.22 with an error log the provider’s error and description, clean and short, and never show them', async () => {
    await comesBackWith('invalid_client\n', `AADSTS7000215: no\r\n{"forged":1}${'x'.repeat(1000)}`);
    const lines = app.log.filter((line) => line.includes('AADSTS7000215'));
    const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const line = parsed.find(({ context }) => context === 'upstream');
    expect(line).toMatchObject({ provider: 'fake', error: 'invalid_client' });
    expect(line?.['errorDescription']).toMatch(/^AADSTS7000215: no {1,2}\{"forged":1\}x+$/);
    expect(line?.['errorDescription']).toHaveLength(200);
  });

  it.each([
    [
      'a token endpoint that refuses',
      {
        token: {
          status: 400,
          body: { error: 'invalid_grant', error_description: 'AADSTS54005 used' },
        },
      },
      /AADSTS54005/,
    ],
    [
      'an ID token of another issuer',
      { claims: (claims: object) => ({ ...claims, iss: 'https://x.test' }) },
      /iss/,
    ],
    ['an ID token signed by another', { signature: 'foreign key' as const }, /signature/],
  ])('10.22 with %s log the reason', async (_, misbehaviour, reason) => {
    fake.misbehaviour = misbehaviour;
    const before = app.log.length;
    const page = await app.client().follow('/login?provider=fake');
    expect(page.status).toBe(400);
    expect(page.text).not.toMatch(/AADSTS/);
    const lines = app.log.slice(before).map((line) => JSON.parse(line) as { context?: string });
    const line = lines.find(({ context }) => context === 'upstream');
    expect(JSON.stringify(line)).toMatch(reason);
  });

  it('10.24 of a user are audited for the user, in the organization', async () => {
    await app.enrolled('ada@rows.example');
    const user = await userOf('ada@rows.example');
    await app.client().signIn('ada@rows.example');
    expect(await logged('subject_id = $1', [user?.id])).toEqual([
      {
        type: 'upstream_login',
        class: 'auth',
        actor_id: user?.id,
        subject_id: user?.id,
        org_id: user?.org_id,
        details: { provider: 'demo', issuer: expect.any(String), email: 'ada@rows.example' },
      },
    ]);
  });

  it('10.24 without an account are audited in the organization of the domain', async () => {
    await app.enrolled('founder@rows2.example');
    await app.client().signIn('new@rows2.example');
    const org = await userOf('founder@rows2.example');
    expect(await logged("details->>'email' = 'new@rows2.example'", [])).toEqual([
      expect.objectContaining({ type: 'upstream_login', subject_id: null, org_id: org?.org_id }),
    ]);
  });

  it('10.24 that are refused are audited with the reason: of a deactivated user, and at the provider', async () => {
    await app.enrolled('ada@rows3.example');
    const user = await userOf('ada@rows3.example');
    await app.dataSource.query('UPDATE users SET active = false WHERE id = $1', [user?.id]);
    expect((await app.client().signIn('ada@rows3.example')).status).toBe(403);
    const refused = await logged("subject_id = $1 AND type = 'upstream_login_refused'", [user?.id]);
    expect(refused).toEqual([
      expect.objectContaining({ org_id: user?.org_id, actor_id: null, class: 'auth' }),
    ]);
    await comesBackWith('access_denied', 'the 10.24 test');
    expect(await logged("details->>'error_description' = 'the 10.24 test'", [])).toEqual([
      expect.objectContaining({
        type: 'upstream_login_refused',
        details: expect.objectContaining({
          provider: 'fake',
          code: 'sign_in_failed',
          error: 'access_denied',
        }),
      }),
    ]);
  });

  it('10.24 with a forged state are not audited', async () => {
    const before = await count(app.dataSource, 'audit_events');
    expect((await app.client().get('/oauth/callback?state=x&code=y')).status).toBe(400);
    expect(await count(app.dataSource, 'audit_events')).toBe(before);
  });

  describe('a sign-in in a browser with a verified session', () => {
    const CROSS_SITE = { headers: { 'sec-fetch-site': 'cross-site' } };
    /**
     * Begins a sign-in with the given headers, and follows its redirects. Returns the first
     * response that is no redirect.
     */
    async function signIn(client: Client, email: string, options: object) {
      const query = new URLSearchParams({ provider: 'demo', login_hint: email });
      const away = await client.get(`/login?${query.toString()}`, options);
      return client.follow(away.headers.get('location') ?? '');
    }

    it('10.5 keeps the session when the same user signs in, from the service’s page or another site', async () => {
      const { client, key } = await app.enrolled('ada@kept.example');
      const token = client.cookie('svc_session');
      const before = await count(app.dataSource, 'sessions');
      for (const options of [CROSS_SITE, {}]) {
        const page = await signIn(client, 'ada@kept.example', options);
        expect([page.status, page.url.pathname]).toEqual([200, '/login']);
        expect(client.cookie('svc_session')).toBe(token);
        expect((await client.get('/v1/keys')).status).toBe(200);
      }
      expect(await count(app.dataSource, 'sessions')).toBe(before);
      expect((await client.logIn(key)).status).toBe(200);
    });

    it('10.5 keeps the session when another site begins a sign-in of another user, who is refused', async () => {
      const { client } = await app.enrolled('ada@switch.example');
      const token = client.cookie('svc_session');
      for (const other of ['bob@switch.example', 'eve@elsewhere-switch.example']) {
        for (const site of ['cross-site', 'same-site']) {
          const page = await signIn(client, other, { headers: { 'sec-fetch-site': site } });
          expect(page.status).toBe(403);
        }
      }
      expect(client.cookie('svc_session')).toBe(token);
      expect((await client.get('/v1/keys')).status).toBe(200);
      expect(
        (await logged("details->>'email' = 'bob@switch.example'", [])).map(({ type }) => type),
      ).toEqual(['upstream_login_refused', 'upstream_login_refused']);
    });

    it('10.5 replaces the session when another user signs in from the service’s page, or from the address bar', async () => {
      for (const site of ['same-origin', 'none']) {
        const { client } = await app.enrolled(`ada-${site}@own.example`);
        const token = client.cookie('svc_session') ?? '';
        const page = await signIn(client, 'bob@own.example', {
          headers: { 'sec-fetch-site': site },
        });
        expect(page.status).toBe(200);
        const old = app.client();
        old.setCookie('svc_session', token);
        expect((await old.get('/v1/keys')).status).toBe(401);
      }
    });

    it('10.5 ends the session when the sign-in changes the e-mail, and a bootstrap session follows', async () => {
      const { client } = await app.enrolled('maiden@changed.example');
      const token = client.cookie('svc_session');
      says.set('maiden@changed.example', { email: 'married@changed.example' });
      const page = await signIn(client, 'maiden@changed.example', {});
      expect(page.status).toBe(200);
      expect(client.cookie('svc_session')).not.toBe(token);
      expect((await client.get('/v1/keys')).status).toBe(403);
    });
  });
});
