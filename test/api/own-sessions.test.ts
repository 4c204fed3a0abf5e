import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SessionJson } from '../../src/features/sessions/session-json.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { OauthRows, type UserRow } from '../support/oauth-rows.js';
import { postForm } from '../support/oauth-flow.js';
import { idOf } from '../support/org-api.js';
import { count, rows } from '../support/rows.js';

const LAPTOP = { 'user-agent': 'Laptop/1.0' };
const PHONE = { 'user-agent': 'Phone/2.0' };

let app: TestApp;
let oauth: OauthRows;
beforeAll(async () => {
  app = await startTestApp();
  oauth = new OauthRows(app.dataSource);
});
afterAll(() => app.close());

const listed = async (browser: Client): Promise<SessionJson[]> => {
  const answer = await browser.get('/v1/sessions', { address: newAddress() });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return answer.json.sessions as SessionJson[];
};
const end = (browser: Client, id: string) =>
  browser.send('DELETE', `/v1/sessions/${id}`, { address: newAddress() });
const isIn = async (browser: Client) =>
  (await browser.get('/v1/keys', { address: newAddress() })).status === 200;
const endings = (id: string) =>
  rows<{ actor_id: string; details: Record<string, unknown> }>(
    app.dataSource,
    `SELECT actor_id, details FROM audit_events
     WHERE type = 'session_ended' AND class = 'auth' AND details ->> 'session_id' = $1`,
    [id],
  );

let people = 0;

/**
 * Creates a user who is logged in on two clients, a laptop and a phone. Each has its own user agent
 * and IP address.
 */
async function onTwoDevices() {
  people += 1;
  const email = `ada-${people}@sessions.example`;
  const { client: laptop, key } = await app.enrolled(email);
  const phone = app.client();
  const logIn = async (browser: Client, headers: Record<string, string>) => {
    const { state, publicKey } = (await browser.post('/login/webauthn/start', {})).json;
    const credential = key.get(publicKey, app.baseUrl);
    const answer = await browser.post(
      '/login/webauthn/complete',
      { state, credential },
      { headers },
    );
    expect(answer.status).toBe(200);
  };
  await laptop.post('/logout');
  await logIn(laptop, LAPTOP);
  await logIn(phone, PHONE);
  const id = await idOf(app, email);
  const [row] = await rows<{ id: string }>(
    app.dataSource,
    'SELECT id FROM authenticators WHERE user_id = $1',
    [id],
  );
  const person: UserRow = { id, email, orgId: null, keyId: row?.id ?? '' };
  return { laptop, phone, person };
}

describe('GET /v1/sessions', () => {
  it('10.10 lists the user’s sessions: where each was opened, its expiry, and which one is the caller’s', async () => {
    const { laptop, phone } = await onTwoDevices();
    const sessions = await listed(laptop);
    expect(sessions).toEqual([
      {
        id: expect.any(String),
        device: PHONE['user-agent'],
        address: phone.address,
        client: null,
        hardware_verified: true,
        created_at: expect.stringMatching(/Z$/),
        expires_at: expect.stringMatching(/Z$/),
        current: false,
      },
      expect.objectContaining({
        device: LAPTOP['user-agent'],
        address: laptop.address,
        current: true,
      }),
    ]);
    expect((await listed(phone)).map(({ current }) => current)).toEqual([true, false]);
  });

  it('10.10 lists no session of another user, and no ended one', async () => {
    const { laptop, phone, person } = await onTwoDevices();
    await onTwoDevices();
    await rows(
      app.dataSource,
      `UPDATE sessions SET expires_at = now() WHERE user_id = $1 AND user_agent = $2`,
      [person.id, PHONE['user-agent']],
    );
    expect((await listed(laptop)).map(({ device }) => device)).toEqual([LAPTOP['user-agent']]);
    expect((await phone.get('/v1/sessions')).status).toBe(401);
  });

  it('10.10 shows address and program of an approved device, and its client', async () => {
    const { laptop } = await onTwoDevices();
    const address = newAddress();
    const { json: codes } = await postForm(
      app,
      '/oauth/device',
      { client_id: 'svc-cli', scope: 'openid svc:credentials' },
      { 'user-agent': 'svc/0.5', 'x-forwarded-for': address },
    );
    const approved = await laptop.post('/device/approve', { user_code: codes.user_code });
    expect(approved.status).toBe(200);
    const [newest] = await listed(laptop);
    expect(newest).toMatchObject({
      device: 'svc/0.5',
      address,
      client: { client_id: 'svc-cli', name: expect.any(String) },
      current: false,
    });
  });

  it('10.10 requires a hardware-verified session, or a token with svc:credentials', async () => {
    const browser = app.client();
    await browser.signIn('new@sessions.example');
    expect((await browser.get('/v1/sessions')).status).toBe(403);
    expect((await app.client().get('/v1/sessions')).status).toBe(401);
    const { person } = await onTwoDevices();
    const ask = async (scope: string) => {
      const token = await oauth.token(person, { payload: { scope } });
      const headers = { authorization: `Bearer ${token}` };
      return (await app.client().get('/v1/sessions', { headers })).status;
    };
    expect(await ask('openid svc:credentials')).toBe(200);
    expect(await ask('openid svc:applications')).toBe(403);
  });
});

describe('DELETE /v1/sessions/{id}', () => {
  it('10.10 ends another session of the user at once, audits it, and keeps the caller’s', async () => {
    const { laptop, phone, person } = await onTwoDevices();
    const [other] = await listed(laptop);
    const answer = await end(laptop, other?.id ?? '');
    expect([answer.status, answer.text, answer.headers.get('set-cookie')]).toEqual([204, '', null]);
    expect([await isIn(phone), await isIn(laptop)]).toEqual([false, true]);
    expect(await endings(other?.id ?? '')).toEqual([
      {
        actor_id: person.id,
        details: {
          session_id: other?.id,
          opened_from: { ip: phone.address, user_agent: PHONE['user-agent'] },
        },
      },
    ]);
  });

  it('10.10 ends the grants and tokens of the session, also those of svc-cli', async () => {
    const { laptop, person } = await onTwoDevices();
    const session = await oauth.session(person, { clientId: 'svc-cli' });
    const token = await oauth.token(person, { session });
    const headers = { authorization: `Bearer ${token}` };
    expect((await app.client().get('/v1/keys', { headers })).status).toBe(200);
    expect((await end(laptop, session.id)).status).toBe(204);
    expect((await app.client().get('/v1/keys', { headers })).status).toBe(401);
    expect(await count(app.dataSource, 'oauth_grants WHERE session_id = $1', [session.id])).toBe(0);
    expect(await endings(session.id)).toEqual([
      expect.objectContaining({ details: expect.objectContaining({ client_id: 'svc-cli' }) }),
    ]);
  });

  it('10.10 deletes the cookie of a browser that ends its own', async () => {
    const { laptop } = await onTwoDevices();
    const own = (await listed(laptop)).find(({ current }) => current);
    const answer = await end(laptop, own?.id.toUpperCase() ?? '');
    expect(answer.status).toBe(204);
    expect(answer.headers.get('set-cookie')).toMatch(/^svc_session=;.*Max-Age=0/);
    expect(await isIn(laptop)).toBe(false);
  });

  it('10.10 does not find a session of another user, which stays open', async () => {
    const { laptop } = await onTwoDevices();
    const eve = await onTwoDevices();
    const sessions = await listed(laptop);
    for (const id of [...sessions.map((session) => session.id), randomUUID(), 'mine']) {
      const answer = await end(eve.laptop, id);
      expect([answer.status, answer.json.code]).toEqual([404, 'not_found']);
    }
    expect(await listed(laptop)).toEqual(sessions);
  });

  it('10.10 ends a session once for 20 requests at once', async () => {
    const { laptop } = await onTwoDevices();
    const [other] = await listed(laptop);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => end(laptop, other?.id ?? '')),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([204, ...Array.from({ length: 19 }, () => 404)]);
    expect(await endings(other?.id ?? '')).toHaveLength(1);
  });

  it('10.10 is accepted from the service’s own pages, and not from another origin', async () => {
    const { laptop } = await onTwoDevices();
    const [other] = await listed(laptop);
    const headers = { origin: 'https://evil.example' };
    const answer = await laptop.send('DELETE', `/v1/sessions/${other?.id}`, { headers });
    expect([answer.status, answer.json.code]).toEqual([403, 'invalid_origin']);
  });
});

describe('the sessions that sign-ins at the identity provider open', () => {
  it('are at most 100 for a user, so that one statement can end all of them', async () => {
    const { client: ada } = await app.enrolled('ada@many-sign-ins.example');
    const userId = await idOf(app, 'ada@many-sign-ins.example');
    await rows(
      app.dataSource,
      `INSERT INTO sessions (id, token_hash, level, user_id, created_at, expires_at)
       SELECT gen_random_uuid(), sha256(n::text::bytea), 'bootstrap', $1, now() - make_interval(secs => n),
              now() + interval '1 hour' FROM generate_series(1, 300) n`,
      [userId],
    );
    const other = app.client();
    await other.signIn('ada@many-sign-ins.example');
    expect(other.cookie('svc_session')).toEqual(expect.any(String));
    const kept = await rows<{ level: string; n: number; oldest: number }>(
      app.dataSource,
      `SELECT level, count(*)::int AS n, round(extract(epoch FROM now() - min(created_at)))::int AS oldest
       FROM sessions WHERE user_id = $1 GROUP BY level ORDER BY level`,
      [userId],
    );
    expect(kept).toMatchObject([
      { level: 'bootstrap', n: 100 },
      { level: 'verified', n: 1 },
    ]);
    expect(kept[0]?.oldest).toBeLessThan(150);
    expect(await isIn(ada)).toBe(true);
    expect((await other.get('/v1/keys')).json.code).toBe('hardware_required');
  });

  it('are trimmed a thousand at a time, so that a sign-in stays fast', async () => {
    await app.enrolled('bob@many-sign-ins.example');
    const userId = await idOf(app, 'bob@many-sign-ins.example');
    await rows(
      app.dataSource,
      `INSERT INTO sessions (id, token_hash, level, user_id, created_at, expires_at)
       SELECT gen_random_uuid(), sha256('b'::bytea || n::text::bytea), 'bootstrap', $1,
              now() - make_interval(secs => n), now() + interval '1 hour' FROM generate_series(1, 1500) n`,
      [userId],
    );
    await app.client().signIn('bob@many-sign-ins.example');
    const left = "sessions WHERE user_id = $1 AND level = 'bootstrap'";
    expect(await count(app.dataSource, left, [userId])).toBe(501);
  });

  it('end no new session, even if all others seem newer because the clock went back', async () => {
    await app.enrolled('cyd@many-sign-ins.example');
    const userId = await idOf(app, 'cyd@many-sign-ins.example');
    await rows(
      app.dataSource,
      `INSERT INTO sessions (id, token_hash, level, user_id, created_at, expires_at)
       SELECT gen_random_uuid(), sha256('c'::bytea || n::text::bytea), 'bootstrap', $1,
              now() + make_interval(secs => n), now() + interval '1 hour' FROM generate_series(101, 300) n`,
      [userId],
    );
    const browser = app.client();
    await browser.signIn('cyd@many-sign-ins.example');
    expect((await browser.get('/v1/keys')).json.code).toBe('hardware_required');
    const left = "sessions WHERE user_id = $1 AND level = 'bootstrap'";
    expect(await count(app.dataSource, left, [userId])).toBe(100);
  });
});
