import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type TestApp } from '../support/app.js';
import { auditOf, count, rows } from '../support/rows.js';

describe('logging in with a security key', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('needs no session: the key names its user', async () => {
    const { key } = await app.enrolled('discoverable@acme.example');
    const client = app.client();
    const answer = await client.logIn(key);
    expect([answer.status, answer.json]).toEqual([200, { redirect_to: `${app.baseUrl}/` }]);
    expect((await client.get('/v1/keys')).json.keys).toHaveLength(1);
    const [session] = await rows(
      app.dataSource,
      `SELECT s.amr, s.acr, s.level, extract(epoch FROM s.expires_at - s.created_at) / 3600 AS hours
       FROM sessions s JOIN users u ON u.id = s.user_id
       WHERE u.email = 'discoverable@acme.example' ORDER BY s.id DESC`,
    );
    expect(session).toEqual({
      amr: ['hwk', 'pin', 'user'],
      acr: 'urn:nist:authentication:assurance-level:aal3',
      level: 'verified',
      hours: '8.0000000000000000',
    });
  });

  it('upgrades a bootstrap session with a new token, and the old cookie is invalid', async () => {
    const { key } = await app.enrolled('raise@acme.example');
    const client = app.client();
    await client.signIn('raise@acme.example', '/account/keys');
    const bootstrap = client.cookie('svc_session') ?? '';
    const { state, publicKey } = (
      await client.post('/login/webauthn/start', { redirect_to: '/account/keys' })
    ).json;
    expect(publicKey.allowCredentials).toHaveLength(1);
    const answer = await client.post('/login/webauthn/complete', {
      state,
      credential: key.get(publicKey, app.baseUrl),
    });
    expect(answer.json).toEqual({ redirect_to: `${app.baseUrl}/account/keys` });
    expect(client.cookie('svc_session')).not.toBe(bootstrap);
    const old = app.client();
    old.setCookie('svc_session', bootstrap);
    expect((await old.get('/v1/keys')).status).toBe(401);
  });

  it('in a verified session renews only auth_time: same token, same expiry', async () => {
    const { client, key } = await app.enrolled('step-up@acme.example');
    const token = client.cookie('svc_session');
    const look = () =>
      rows<{ auth_time: Date; expires_at: Date }>(
        app.dataSource,
        `SELECT s.auth_time, s.expires_at FROM sessions s JOIN users u ON u.id = s.user_id
         WHERE u.email = 'step-up@acme.example'`,
      );
    const [before] = await look();
    expect((await client.logIn(key)).status).toBe(200);
    const [after, ...others] = await look();
    expect(others).toEqual([]);
    expect(client.cookie('svc_session')).toBe(token);
    expect(after?.expires_at).toEqual(before?.expires_at);
    expect(after?.auth_time.getTime()).toBeGreaterThan(before?.auth_time.getTime() ?? Infinity);
  });

  it('"refuses another user\'s key in a bootstrap session, and audits it"', async () => {
    const { key } = await app.enrolled('mallory@acme.example');
    await app.enrolled('victim@acme.example');
    const client = app.client();
    await client.signIn('victim@acme.example');
    const { state, publicKey } = (await client.post('/login/webauthn/start', {})).json;
    const credential = key.get({ ...publicKey, allowCredentials: [] }, app.baseUrl);
    const answer = await client.post('/login/webauthn/complete', { state, credential });
    expect([answer.status, answer.json.code]).toEqual([400, 'assertion_rejected']);
    expect(answer.json.detail).toContain('another account');
    expect((await client.get('/v1/keys')).status).toBe(403);
    const events = await auditOf(app.dataSource, 'mallory@acme.example');
    expect(events.at(-1)?.type).toBe('login_failed');
  });

  it('refuses an unknown key', async () => {
    const client = app.client();
    const { state, publicKey } = (await client.post('/login/webauthn/start', {})).json;
    const stranger = new SoftwareKey();
    stranger.create(
      {
        rp: { id: 'localhost' },
        user: { id: 'AAAA' },
        challenge: publicKey.challenge,
        pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
        excludeCredentials: [],
        authenticatorSelection: { userVerification: 'preferred' },
      },
      app.baseUrl,
    );
    const credential = stranger.get(publicKey, app.baseUrl);
    const answer = await client.post('/login/webauthn/complete', { state, credential });
    expect([answer.status, answer.json.code]).toEqual([400, 'assertion_rejected']);
  });

  it('a U2F key alone cannot log in: user presence counts only in a session of its owner', async () => {
    const key = app.newKey({ format: 'fido-u2f' });
    const owner = app.client();
    await owner.signIn('u2f-owner@acme.example');
    await owner.enroll(key);
    const known = (await owner.post('/login/webauthn/start', {})).json.publicKey.allowCredentials;

    const client = app.client();
    const { state, publicKey } = (await client.post('/login/webauthn/start', {})).json;
    const credential = key.get({ ...publicKey, allowCredentials: known }, app.baseUrl);
    const answer = await client.post('/login/webauthn/complete', { state, credential });
    expect([answer.status, answer.json.code]).toEqual([400, 'assertion_rejected']);
    expect(answer.json.detail).toContain('cannot verify its user');
  });

  it('20 parallel completions with one state: one session, 19 the same 400', async () => {
    const { key } = await app.enrolled('parallel-login@acme.example');
    const client = app.client();
    const { state, publicKey } = (await client.post('/login/webauthn/start', {})).json;
    const browser = client.cookie('svc_browser') ?? '';
    const credential = key.get(publicKey, app.baseUrl);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => {
        const same = app.client();
        same.setCookie('svc_browser', browser);
        return same.post('/login/webauthn/complete', { state, credential });
      }),
    );
    const codes = answers
      .map(({ status, json }) => `${status} ${json.code ?? ''}`.trim())
      .toSorted();
    expect(codes).toEqual(['200', ...Array.from({ length: 19 }, () => '400 invalid_state')]);
    expect(
      await count(
        app.dataSource,
        `sessions s JOIN users u ON u.id = s.user_id WHERE u.email = 'parallel-login@acme.example'`,
      ),
    ).toBe(2); // the session of the enrollment and the one of this login
  });

  it('a deactivated user cannot log in, which is audited', async () => {
    const { key, client: old } = await app.enrolled('gone@acme.example');
    await app.dataSource.query("UPDATE users SET active = false WHERE email = 'gone@acme.example'");
    const answer = await app.client().logIn(key);
    expect([answer.status, answer.json.code]).toEqual([403, 'account_inactive']);
    const last = (await auditOf(app.dataSource, 'gone@acme.example')).at(-1);
    const details = { reason: answer.json.detail };
    expect(last).toMatchObject({ type: 'login_failed', details });
    expect((await old.get('/v1/keys')).status).toBe(401);
    const refused = await app.client().signIn('gone@acme.example');
    expect(refused.status).toBe(403);
  });

  it('a logout ends the session itself, not only the cookie', async () => {
    const { client } = await app.enrolled('leaver@acme.example');
    const token = client.cookie('svc_session') ?? '';
    const answer = await client.post('/logout');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/']);
    expect(client.cookie('svc_session')).toBeUndefined();
    const thief = app.client();
    const reuse = await thief.get('/v1/keys', { headers: { authorization: `Bearer ${token}` } });
    expect(reuse.status).toBe(401);
    expect((await auditOf(app.dataSource, 'leaver@acme.example')).at(-1)?.type).toBe('logout');
  });

  it('an expired session is refused', async () => {
    const { client } = await app.enrolled('expired@acme.example');
    await app.dataSource.query(
      `UPDATE sessions SET expires_at = now() - interval '1 second'
       WHERE user_id = (SELECT id FROM users WHERE email = 'expired@acme.example')`,
    );
    expect((await client.get('/v1/keys')).status).toBe(401);
  });
});

describe('the signature counter', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it.each([
    [5, 5, 400],
    [5, 4, 400],
    [5, 0, 400],
    [0, 0, 200],
    [0, 1, 200],
    [5, 6, 200],
  ])('%i then %i answers %i', async (stored, reported, status) => {
    const email = `counter-${stored}-${reported}@acme.example`;
    const { key } = await app.enrolled(email);
    await app.dataSource.query(
      'UPDATE authenticators a SET sign_count = $2 FROM users u WHERE u.id = a.user_id AND u.email = $1',
      [email, stored],
    );
    key.signCount = reported - 1;
    const answer = await app.client().logIn(key);
    expect(answer.status).toBe(status);
    const last = (await auditOf(app.dataSource, email)).at(-1);
    expect(last?.type).toBe(status === 200 ? 'login_success' : 'login_failed');
    if (status !== 200) {
      expect(answer.json.detail).toContain('counter');
      expect(last?.details['reason']).toBe('signature counter did not grow');
    }
  });

  it('20 assertions with one counter value: a cloned key cannot log in', async () => {
    const { key } = await app.enrolled('clone@acme.example');
    const attempts = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const client = app.client();
        const { state, publicKey } = (await client.post('/login/webauthn/start', {})).json;
        return { client, state, publicKey };
      }),
    );
    const answers = await Promise.all(
      attempts.map(({ client, state, publicKey }) => {
        key.signCount = 6;
        const credential = key.get(publicKey, app.baseUrl);
        return client.post('/login/webauthn/complete', { state, credential });
      }),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });
});
