import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Answer } from '../support/client.js';
import { auditOf, count, rows } from '../support/rows.js';

const outcomes = (answers: readonly Answer[]) =>
  answers.map(({ status, json }) => `${status} ${json?.code ?? ''}`.trim()).toSorted();

describe('enrollment', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  const keysOf = (email: string) =>
    count(app.dataSource, 'authenticators a JOIN users u ON u.id = a.user_id WHERE u.email = $1', [
      email,
    ]);

  it('creates user, organization and binding together with the key, and nothing before', async () => {
    const client = app.client();
    await client.signIn('first@newcorp.example');
    expect(
      await count(app.dataSource, "organization_domains WHERE domain = 'newcorp.example'"),
    ).toBe(0);
    expect(await count(app.dataSource, "users WHERE email = 'first@newcorp.example'")).toBe(0);

    expect((await client.enroll(app.newKey())).status).toBe(200);
    const [person] = await rows(
      app.dataSource,
      `SELECT u.is_org_admin, o.name, i.subject IS NOT NULL AS bound
       FROM users u JOIN organizations o ON o.id = u.org_id JOIN identities i ON i.user_id = u.id
       WHERE u.email = 'first@newcorp.example'`,
    );
    expect(person).toEqual({ is_org_admin: true, name: 'newcorp.example', bound: true });
    const events = await auditOf(app.dataSource, 'first@newcorp.example');
    expect(events.map(({ type }) => type)).toEqual([
      'identity_bound',
      'admin_promote',
      'enrollment',
    ]);
    expect(events[2]?.ip).toMatch(/^10\./);
  });

  it('the second user of a domain joins its organization and does not become its admin', async () => {
    await app.enrolled('founder@joined.example');
    await app.enrolled('second@joined.example');
    const people = await rows(
      app.dataSource,
      `SELECT email, is_org_admin FROM users WHERE email LIKE '%@joined.example' ORDER BY id`,
    );
    expect(people).toEqual([
      { email: 'founder@joined.example', is_org_admin: true },
      { email: 'second@joined.example', is_org_admin: false },
    ]);
  });

  it('a public mail domain creates no organization', async () => {
    const { client } = await app.enrolled('somebody@gmail.com');
    expect(
      await rows(
        app.dataSource,
        "SELECT org_id, is_org_admin FROM users WHERE email = 'somebody@gmail.com'",
      ),
    ).toEqual([{ org_id: null, is_org_admin: false }]);
    expect((await client.get('/v1/keys')).status).toBe(200);
  });

  it('20 parallel completions with one state: one key, 19 the same 400', async () => {
    const client = app.client();
    await client.signIn('parallel@acme.example');
    const bootstrap = client.cookie('svc_session') ?? '';
    const { state, publicKey } = (await client.post('/enroll/webauthn/start', {})).json;
    const credential = app.newKey().create(publicKey, app.baseUrl);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        client.post('/enroll/webauthn/complete', { state, credential }, { address: newAddress() }),
      ),
    );
    // All 20 found the bootstrap session before the successful one ended it. A later request in
    // this session gets 401, as at the end.
    const lost = outcomes(answers).filter((outcome) => outcome !== '200');
    expect(lost).toHaveLength(19);
    expect(new Set(lost)).toEqual(new Set(['400 invalid_state']));
    expect(await keysOf('parallel@acme.example')).toBe(1);
    const old = app.client();
    old.setCookie('svc_session', bootstrap);
    expect((await old.get('/v1/keys')).status).toBe(401);
  });

  it('two states of one bootstrap session: one key', async () => {
    const client = app.client();
    await client.signIn('two-states@acme.example');
    const starts = await Promise.all([1, 2].map(() => client.post('/enroll/webauthn/start', {})));
    const answers = await Promise.all(
      starts.map(({ json: { state, publicKey } }) =>
        client.post('/enroll/webauthn/complete', {
          state,
          credential: app.newKey().create(publicKey, app.baseUrl),
        }),
      ),
    );
    expect(outcomes(answers).filter((outcome) => outcome === '200')).toHaveLength(1);
    expect(await keysOf('two-states@acme.example')).toBe(1);
  });

  it('two bootstrap sessions of one new user: one key, one account', async () => {
    const browsers = [app.client(), app.client()];
    const starts: Answer['json'][] = [];
    for (const browser of browsers) {
      await browser.signIn('two-browsers@acme.example');
      starts.push((await browser.post('/enroll/webauthn/start', {})).json);
    }
    const answers = await Promise.all(
      browsers.map((browser, index) =>
        browser.post('/enroll/webauthn/complete', {
          state: starts[index].state,
          credential: app.newKey().create(starts[index].publicKey, app.baseUrl),
        }),
      ),
    );
    expect(outcomes(answers)).toEqual(['200', '403 enrollment_refused']);
    expect(await keysOf('two-browsers@acme.example')).toBe(1);
    expect(await count(app.dataSource, "users WHERE email = 'two-browsers@acme.example'")).toBe(1);
  });

  it('20 users who found one domain at once: one organization, one admin', async () => {
    const browsers = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const client = app.client();
        await client.signIn(`founder-${index}@race.example`);
        return { client, start: (await client.post('/enroll/webauthn/start', {})).json };
      }),
    );
    const answers = await Promise.all(
      browsers.map(({ client, start }) =>
        client.post('/enroll/webauthn/complete', {
          state: start.state,
          credential: app.newKey().create(start.publicKey, app.baseUrl),
        }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(await count(app.dataSource, "organization_domains WHERE domain = 'race.example'")).toBe(
      1,
    );
    expect(await count(app.dataSource, "users WHERE email LIKE 'founder-%@race.example'")).toBe(20);
    expect(
      await count(
        app.dataSource,
        "users WHERE email LIKE 'founder-%@race.example' AND is_org_admin",
      ),
    ).toBe(1);
  });

  it('a bootstrap session whose user has a key gets 403 at /enroll', async () => {
    await app.enrolled('has-a-key@acme.example');
    const client = app.client();
    const page = await client.signIn('has-a-key@acme.example');
    expect(page.url.pathname).toBe('/login');
    const start = await client.post('/enroll/webauthn/start', {});
    expect([start.status, start.json.code]).toEqual([403, 'already_enrolled']);
    const refused = await client.get('/enroll', { headers: { accept: 'text/html' } });
    expect(refused.status).toBe(403);
    expect(refused.headers.get('content-type')).toContain('text/html');
  });

  it('one security key is registered once, for any user', async () => {
    const key = app.newKey();
    const first = app.client();
    await first.signIn('owner@acme.example');
    const start = (await first.post('/enroll/webauthn/start', {})).json;
    const credential = key.create(start.publicKey, app.baseUrl);
    await first.post('/enroll/webauthn/complete', { state: start.state, credential });

    const thief = app.client();
    await thief.signIn('thief@acme.example');
    const theirs = (await thief.post('/enroll/webauthn/start', {})).json;
    const replayed = key.create(theirs.publicKey, app.baseUrl);
    // Gives the owner's key the credential id that the thief sends, as if a key had returned an
    // existing id in a new ceremony.
    await app.dataSource.query(
      'UPDATE authenticators SET credential_id = $1 WHERE credential_id = $2',
      [Buffer.from(replayed.id, 'base64url'), Buffer.from(credential.id, 'base64url')],
    );
    const answer = await thief.post('/enroll/webauthn/complete', {
      state: theirs.state,
      credential: replayed,
    });
    expect([answer.status, answer.json.code]).toEqual([409, 'credential_exists']);
    expect(await keysOf('thief@acme.example')).toBe(0);
    // The refusal has not ended the session: the same user enrolls another key in it.
    expect((await thief.enroll(app.newKey())).status).toBe(200);
  });

  it('a U2F key enrolls with user presence only, and the login step follows', async () => {
    const client = app.client();
    const key = app.newKey({ format: 'fido-u2f' });
    await client.signIn('u2f@acme.example');
    const enrolled = await client.enroll(key);
    expect(enrolled.json.key.user_verification).toBe(false);
    expect(enrolled.json.redirect_to).toMatch(/\/login\?redirect_to=/);
    expect((await client.get('/v1/keys')).status).toBe(403);

    expect((await client.logIn(key)).status).toBe(200);
    const [session] = await rows(
      app.dataSource,
      `SELECT s.amr, s.acr FROM sessions s JOIN users u ON u.id = s.user_id WHERE u.email = 'u2f@acme.example'`,
    );
    expect(session).toEqual({ amr: ['hwk', 'user'], acr: null });
  });

  it('requires a session, and the service’s own page', async () => {
    expect((await app.client().post('/enroll/webauthn/start', {})).status).toBe(401);
    const client = app.client();
    await client.signIn('origin@acme.example');
    for (const origin of ['https://evil.example', 'null', '']) {
      const answer = await client.post('/enroll/webauthn/start', {}, { headers: { origin } });
      expect([answer.status, answer.json.code]).toEqual([403, 'invalid_origin']);
    }
  });

  it('a refused attestation creates no user, and the session can try again', async () => {
    const client = app.client();
    await client.signIn('refused@acme.example');
    const start = (await client.post('/enroll/webauthn/start', {})).json;
    const { SoftwareKey } = await import('@svc/stand-ins/software-key');
    // a key with an attestation root of its own, which the service does not trust
    const stranger = new SoftwareKey();
    const answer = await client.post('/enroll/webauthn/complete', {
      state: start.state,
      credential: stranger.create(start.publicKey, app.baseUrl),
    });
    expect([answer.status, answer.json.code]).toEqual([400, 'attestation_rejected']);
    expect(await count(app.dataSource, "users WHERE email = 'refused@acme.example'")).toBe(0);
    expect((await client.enroll(app.newKey())).status).toBe(200);
  });

  it('an invalid key name is a clear 400', async () => {
    const client = app.client();
    await client.signIn('name@acme.example');
    const answer = await client.enroll(app.newKey(), 'x'.repeat(65));
    expect([answer.status, answer.json.detail]).toEqual([
      400,
      'name: must have at most 64 characters',
    ]);
  });
});

describe('SVC_ALLOWED_DOMAINS and SVC_BOOTSTRAP_ADMINS', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({
      environment: {
        SVC_ALLOWED_DOMAINS: 'Allowed.example',
        SVC_BOOTSTRAP_ADMINS: 'Boss@allowed.example',
      },
    });
  });
  afterAll(() => app.close());

  const admins = async () =>
    (
      await rows<{ email: string }>(app.dataSource, 'SELECT email FROM users WHERE is_org_admin')
    ).map(({ email }) => email);

  it('users of other domains may not enroll', async () => {
    const client = app.client();
    await client.signIn('somebody@other.example');
    const start = await client.post('/enroll/webauthn/start', {});
    expect([start.status, start.json.code]).toEqual([403, 'enrollment_refused']);
  });

  it('only a listed user becomes the first admin, even when other users come first', async () => {
    await app.enrolled('early@allowed.example');
    expect(await admins()).toEqual([]);
    await app.enrolled('boss@allowed.example');
    expect(await admins()).toEqual(['boss@allowed.example']);
  });

  it('a listed user is made admin again in an organization without one, at the next login', async () => {
    const boss = app.client();
    const key = app.newKey();
    await app.dataSource.query('DELETE FROM authenticators');
    await app.dataSource.query('UPDATE users SET is_org_admin = false');
    await boss.signIn('boss@allowed.example');
    await boss.enroll(key);
    expect(await admins()).toEqual(['boss@allowed.example']);
  });

  it('a listed address gives no rights in an organization that does not own its domain', async () => {
    const { client, key } = await app.enrolled('mallory@allowed.example');
    await app.dataSource.query(
      `WITH other AS (INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), 'other') RETURNING id)
       UPDATE users SET org_id = other.id, email = 'boss@allowed.example' FROM other
       WHERE email = 'mallory@allowed.example'`,
    );
    expect((await client.logIn(key)).status).toBe(200);
    expect(await admins()).toEqual(['boss@allowed.example']); // still the earlier admin alone
  });
});
