import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { count, rows } from '../support/rows.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

describe('attacks', () => {
  let app: TestApp;
  const says = new Map<string, object>();
  beforeAll(async () => {
    app = await startTestApp({ claims: (email) => says.get(email) ?? {} });
  });
  afterAll(() => app.close());

  /**
   * Signs in with a consumer account: the provider confirms the e-mail address, but names no
   * organization that owns its domain.
   */
  const consumer = async (email: string) => {
    const client = app.client();
    await client.signIn(email);
    await app.dataSource.query(
      `UPDATE sessions SET pending_identity = pending_identity || '{"organizationDomain": null}'
       WHERE pending_identity->>'email' = $1`,
      [email],
    );
    return client;
  };

  it('a consumer account with a corporate address does not enroll beside its organization', async () => {
    const stranger = await consumer('ceo@twin.example');
    await app.enrolled('founder@twin.example');
    const answer = await stranger.enroll(app.newKey());
    expect([answer.status, answer.json.code]).toEqual([403, 'enrollment_refused']);
  });

  it('an earlier consumer account is issued nothing after an organization owns the domain', async () => {
    const stranger = await consumer('cto@later.example');
    expect((await stranger.enroll(app.newKey())).status).toBe(200);
    const ask = () => stranger.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    expect((await ask()).status).toBe(200);
    await app.enrolled('founder@later.example');
    const answer = await ask();
    expect([answer.status, answer.json.code]).toEqual([403, 'issuance_refused']);
    expect(
      await rows(
        app.dataSource,
        "SELECT revoked_by, revoke_reason FROM ssh_certificates WHERE key_id LIKE 'cto@later.example@%'",
      ),
    ).toEqual([{ revoked_by: 'organization', revoke_reason: 'domain claimed' }]);
  });

  it('a key enrolled without user verification never reaches AAL3, whichever flag it sets later', async () => {
    const { key } = await app.enrolled('liar@acme.example');
    await app.dataSource.query(
      `UPDATE authenticators a SET user_verification = false, attestation = 'fido-u2f'
       FROM users u WHERE u.id = a.user_id AND u.email = 'liar@acme.example'`,
    );
    const client = app.client();
    await client.signIn('liar@acme.example');
    const { state, publicKey } = (await client.post('/login/webauthn/start', {})).json;
    const credential = key.get({ ...publicKey, userVerification: 'required' }, app.baseUrl);
    expect((await client.post('/login/webauthn/complete', { state, credential })).status).toBe(200);
    const [session] = await rows(
      app.dataSource,
      `SELECT s.amr, s.acr FROM sessions s JOIN users u ON u.id = s.user_id
       WHERE u.email = 'liar@acme.example' ORDER BY s.id DESC LIMIT 1`,
    );
    expect(session).toEqual({ amr: ['hwk', 'user'], acr: null });
  });

  it.each([
    ['a\u0000b', 'The body contains characters that are not text. Remove them.'],
    ['a\ud800b', 'The body contains characters that are not text. Remove them.'],
    ['a\u202eb', 'name: must be one line of text, without invisible characters'],
    ['a\nb', 'name: must be one line of text, without invisible characters'],
    ['a\u2028b', 'name: must be one line of text, without invisible characters'],
  ])('a key cannot be named %j', async (name, detail) => {
    const { client } = await app.enrolled(`names-${name.charCodeAt(1)}@acme.example`);
    const [key] = (await client.get('/v1/keys')).json.keys;
    const answer = await client.send('PATCH', `/v1/keys/${key.id}`, { body: { name } });
    expect([answer.status, answer.json.detail]).toEqual([400, detail]);
  });

  it.each([`${'x'.repeat(199)}\u{1f600}tail`, 'nul\u0000name', 'half \ud83d pair', '\u202eeman'])(
    'a user with the name %j at the provider can sign in',
    async (name) => {
      const email = `named-${name.length}@acme.example`;
      says.set(email, { name });
      const { client } = await app.enrolled(email);
      expect((await client.get('/account/keys')).status).toBe(200);
    },
  );

  it('an Authorization header of an unknown scheme bypasses no origin check and hides no session', async () => {
    const { client, key } = await app.enrolled('dpop@acme.example');
    const evil = { origin: 'https://evil.example', authorization: 'DPoP abc' };
    const browser = app.client();
    const start = await browser.post('/login/webauthn/start', {}, { headers: evil });
    expect([start.status, start.json.code]).toEqual([401, 'unauthenticated']);
    const { state, publicKey } = (await browser.post('/login/webauthn/start', {})).json;
    const completed = await browser.post(
      '/login/webauthn/complete',
      { state, credential: key.get(publicKey, app.baseUrl) },
      { headers: evil },
    );
    expect(completed.status).toBe(401);
    expect(browser.cookie('svc_session')).toBeUndefined();

    const left = await client.post('/logout', undefined, {
      headers: { authorization: 'DPoP abc' },
    });
    expect(left.status).toBe(401);
    expect((await client.get('/v1/keys')).status).toBe(200);
  });

  /**
   * Locks a user's row, starts a request that waits for it, makes a change, and commits. Returns
   * the response to the request.
   */
  const heldUp = async <T>(
    email: string,
    begin: () => Promise<T>,
    change: readonly string[],
  ): Promise<T> => {
    const runner = app.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('SELECT id FROM users WHERE email = $1 FOR UPDATE', [email]);
    const waiting = begin();
    await untilWaiting(app.dataSource, 1);
    for (const statement of change) await runner.query(statement, [email]);
    await runner.commitTransaction();
    await runner.release();
    return waiting;
  };

  it('a sign-in that waits for a deactivation opens no session', async () => {
    const email = 'slow@acme.example';
    await app.enrolled(email);
    const page = await heldUp(email, () => app.client().signIn(email), [
      'UPDATE users SET active = false WHERE email = $1',
      'DELETE FROM sessions s USING users u WHERE u.id = s.user_id AND u.email = $1',
    ]);
    expect(page.status).toBe(403);
    const sessions = 'sessions s JOIN users u ON u.id = s.user_id WHERE u.email = $1';
    expect(await count(app.dataSource, sessions, [email])).toBe(0);
  });

  it('a sign-in that waits for a deletion is refused', async () => {
    const email = 'deleted@acme.example';
    await app.enrolled(email);
    const page = await heldUp(email, () => app.client().signIn(email), [
      'DELETE FROM users WHERE email = $1',
    ]);
    expect(page.status).toBe(403);
  });

  it('a key that was removed during its login is unknown, and not a cloned key', async () => {
    const email = 'removed@acme.example';
    const { key } = await app.enrolled(email);
    const answer = await heldUp(email, () => app.client().logIn(key), [
      'DELETE FROM authenticators a USING users u WHERE u.id = a.user_id AND u.email = $1',
    ]);
    expect([answer.status, answer.json.code]).toEqual([400, 'assertion_rejected']);
    expect(answer.json.detail).toContain('not registered');
  });

  it('two session cookies are refused as no session', async () => {
    const { client } = await app.enrolled('tossed@acme.example');
    const own = client.cookie('svc_session') ?? '';
    const { client: other } = await app.enrolled('tosser@acme.example');
    const tossed = other.cookie('svc_session') ?? '';
    const answer = await app.client().get('/v1/keys', {
      headers: { cookie: `svc_session=${tossed}; svc_session=${own}` },
    });
    expect(answer.status).toBe(401);
  });

  it('logging out with a planted cookie besides the own one ends the session', async () => {
    const { client } = await app.enrolled('planted@acme.example');
    const own = client.cookie('svc_session') ?? '';
    const left = await app.client().post('/logout', undefined, {
      headers: { cookie: `svc_session=planted; svc_session=${own}` },
    });
    expect(left.status).toBe(303);
    expect((await client.get('/v1/keys')).status).toBe(401);
  });

  it('a sign-in that waits for an enrollment leads to the login, not to a second enrollment', async () => {
    const email = 'waits@acme.example';
    await app.enrolled(email);
    await app.enrolled('donor@acme.example');
    await app.dataSource.query(
      'DELETE FROM authenticators a USING users u WHERE u.id = a.user_id AND u.email = $1',
      [email],
    );
    const page = await heldUp(email, () => app.client().signIn(email), [
      `UPDATE authenticators SET user_id = (SELECT id FROM users WHERE email = $1)
       WHERE user_id = (SELECT id FROM users WHERE email = 'donor@acme.example')`,
    ]);
    expect(page.url.pathname).toBe('/login');
  });

  it('two browsers that exchange their users at once do not deadlock', async () => {
    const people = ['swap-a@acme.example', 'swap-b@acme.example'] as const;
    const browsers = [];
    for (const email of people) browsers.push((await app.enrolled(email)).client);
    for (const [n, email] of people.entries())
      says.set(email, { email: `swapped-${n}@acme.example` });
    const pages = await Promise.all([
      browsers[0]?.signIn(people[1]),
      browsers[1]?.signIn(people[0]),
    ]);
    expect(pages.map((page) => page?.status)).toEqual([200, 200]);
  });

  it('HEAD does not spend a state', async () => {
    const client = app.client();
    const away = await client.get('/login?provider=demo&login_hint=head@acme.example');
    let url = new URL(away.headers.get('location') ?? '');
    while (url.origin !== app.baseUrl) {
      const hop = await client.get(url.href);
      url = new URL(hop.headers.get('location') ?? '', url);
    }
    expect((await client.send('HEAD', url.href)).status).toBe(405);
    expect((await client.get(url.href)).status).toBe(303);
  });

  it('a long target is replaced by the start page', async () => {
    const { key } = await app.enrolled('long@acme.example');
    for (const target of [`/${'€'.repeat(1500)}`, '\u0001'.repeat(2000)]) {
      const page = await app.client().signIn('long@acme.example', target);
      expect(page.status).toBe(200);
      const client = app.client();
      const { state, publicKey } = (
        await client.post('/login/webauthn/start', { redirect_to: target })
      ).json;
      const credential = key.get(publicKey, app.baseUrl);
      const answer = await client.post('/login/webauthn/complete', { state, credential });
      expect(answer.json).toEqual({ redirect_to: `${app.baseUrl}/` });
    }
  });
});

describe('bootstrap admins who enroll at once', () => {
  let app: TestApp;
  const boss = (n: number) => `boss-${n}@two.example`;
  beforeAll(async () => {
    app = await startTestApp({
      environment: {
        SVC_BOOTSTRAP_ADMINS: Array.from({ length: 10 }, (_, n) => boss(n)).join(','),
      },
    });
  });
  afterAll(() => app.close());

  it('do not deadlock: one becomes admin', async () => {
    await app.enrolled('plain@two.example');
    const enrolled = await Promise.all(Array.from({ length: 10 }, (_, n) => app.enrolled(boss(n))));
    expect(enrolled).toHaveLength(10);
    expect(await count(app.dataSource, 'users WHERE is_org_admin')).toBe(1);
  });
});
