import { randomUUID } from 'node:crypto';
import type { Type } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ClientsRepository } from '../../../src/domain/oauth/clients/clients.repository.js';
import { recordConsent } from '../../../src/domain/oauth/clients/dynamic-clients.repository.js';
import { AuditLog } from '../../../src/domain/audit/audit.repository.js';
import { SelfRegistrations } from '../../../src/features/oidc/storage/self-registrations.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { CALLBACK, authorize, newPkce } from '../../support/oauth-flow.js';
import { count, rows } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';

const METADATA = {
  client_name: 'Harmless',
  redirect_uris: [CALLBACK],
  token_endpoint_auth_method: 'none',
};

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

function register(metadata: object = {}, address = newAddress()): Promise<Answer> {
  return app.client().post('/oauth/register', { ...METADATA, ...metadata }, { address });
}

async function newClientId(metadata: object = {}): Promise<string> {
  const { json } = await register(metadata);
  return json.client_id as string;
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

function ask(browser: Client, parameters: Readonly<Record<string, string>>): Promise<Answer> {
  const query = new URLSearchParams(parameters).toString();
  return browser.get(`/oauth/authorize?${query}`, { address: newAddress() });
}

describe('errors for a client that registered itself', () => {
  const FAULTS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
    ['prompt=none', { prompt: 'none' }],
    ['an unknown response type', { response_type: 'token' }],
    ['no PKCE', { code_challenge: '', code_challenge_method: '' }],
    ['an unknown prompt', { prompt: 'sudo' }],
    ['a signed response', { prompt: 'none', response_mode: 'jwt' }],
    ['a response in the fragment', { prompt: 'none', response_mode: 'fragment' }],
  ];

  it.each(FAULTS)('10.8 stays on a page of the service before consent: %s', async (_, fault) => {
    const { client: user } = await app.enrolled(`${crypto.randomUUID()}@faults.example`);
    const clientId = await newClientId();
    for (const browser of [app.client(), user]) {
      const answer = await ask(browser, asked(clientId, fault));
      expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(answer.text).not.toContain('client.example');
    }
  });

  it('10.8 stays on a page of the service when the user refuses', async () => {
    const { client: user } = await app.enrolled('refuses@faults.example');
    const asking = await ask(user, asked(await newClientId()));
    const interaction = asking.headers.get('location') ?? '';
    await user.get(interaction, { address: newAddress() });
    const refused = await user.post(`${interaction}/deny`, {}, { address: newAddress() });
    const end = await user.get(refused.json.redirect_to, { address: newAddress() });
    expect([end.status, end.headers.get('location')]).toEqual([400, null]);
    expect(end.text).toContain('Access was refused');
  });

  it('10.8 goes to the client after the user consented, in a later session too', async () => {
    const { client: user, key } = await app.enrolled('agrees@faults.example');
    const clientId = await newClientId();
    await authorize(user, asked(clientId));
    await user.post('/logout', undefined, { address: newAddress() });
    await user.logIn(key);
    const answer = await ask(user, asked(clientId, { prompt: 'none' }));
    const location = new URL(answer.headers.get('location') ?? '');
    expect(location.searchParams.get('error')).toBe('consent_required');
    expect(location.href.startsWith(CALLBACK)).toBe(true);
  });

  it('10.8 stays on a page of the service for another user than the one who consented', async () => {
    const { client: first } = await app.enrolled('first@faults.example');
    const { client: second } = await app.enrolled('second@faults.example');
    const clientId = await newClientId();
    await authorize(first, asked(clientId));
    for (const browser of [second, app.client()]) {
      const answer = await ask(browser, asked(clientId, { prompt: 'none' }));
      expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
    }
  });

  it('10.8 stays on a page of the service after the client changed its metadata since the consent', async () => {
    const { client: user } = await app.enrolled('changed@faults.example');
    const { json } = await register();
    const clientId = json.client_id as string;
    await authorize(user, asked(clientId));
    const evil = 'https://evil.example/callback';
    const changed = await app.client().send('PUT', `/oauth/register/${clientId}`, {
      headers: { authorization: `Bearer ${json.registration_access_token}` },
      body: { ...METADATA, client_id: clientId, redirect_uris: [CALLBACK, evil] },
    });
    expect(changed.status).toBe(200);
    const answer = await ask(user, asked(clientId, { redirect_uri: evil, prompt: 'none' }));
    expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
  });

  it('10.8 goes to the client in certification test mode, which requests no consent', async () => {
    const certified = await startTestApp({
      environment: { SVC_CERTIFICATION_TEST_TOKEN: 'a token that only the suite of tests knows' },
    });
    try {
      const { json } = await certified.client().post('/oauth/register', METADATA);
      const answer = await ask(
        certified.client(),
        asked(json.client_id as string, { prompt: 'none' }),
      );
      const location = new URL(answer.headers.get('location') ?? '');
      expect(location.searchParams.get('error')).toBe('login_required');
    } finally {
      await certified.close();
    }
  });
});

describe('logging out for a client that registered itself', () => {
  const AFTERWARDS = 'https://client.example/logged-out';

  it('10.8 asks before it redirects a browser, with a session or without', async () => {
    const clientId = await newClientId({ post_logout_redirect_uris: [AFTERWARDS] });
    const query = new URLSearchParams({
      client_id: clientId,
      post_logout_redirect_uri: AFTERWARDS,
    });
    const { client: user } = await app.enrolled('leaves@faults.example');
    for (const browser of [app.client(), user]) {
      const page = await browser.get(`/oauth/logout?${query.toString()}`);
      expect([page.status, page.text.includes('data-at-once')]).toEqual([200, false]);
      expect(page.text).toContain('<strong>client.example</strong>');
    }
  });
});

describe('the metadata of a client that registers itself', () => {
  const ADDRESSES = [
    'https://user@client.example/callback',
    'https://user:secret@client.example/callback',
    'https://@client.example/callback',
    'https://*.client.example/callback',
    'https://client.example/*',
    'https://client.example/callback#fragment',
    'http://client.example/callback',
    'mailto:user@client.example',
    'myapp:/callback',
    'javascript:alert(1)',
    'com.example.app',
    'https://client.example/ca llback',
    'https://client.example\\callback',
  ];

  it.each(ADDRESSES)('10.8 refuses to send users to %s, after a login or a logout', async (uri) => {
    const redirect = await register({ application_type: 'native', redirect_uris: [uri] });
    expect(redirect.status).toBe(400);
    const logout = await register({
      application_type: 'native',
      post_logout_redirect_uris: [uri],
    });
    expect([logout.status, logout.json.error]).toEqual([400, 'invalid_client_metadata']);
  });

  it.each([
    ['web', 'https://client.example/callback?a=b'],
    ['web', 'http://localhost:3000/callback'],
    ['native', 'http://127.0.0.1/callback'],
    ['native', 'com.example.app:/callback'],
  ])('10.8 accepts a %s client that sends users to %s', async (kind, uri) => {
    const list = [uri];
    const metadata = {
      application_type: kind,
      redirect_uris: list,
      post_logout_redirect_uris: list,
    };
    expect((await register(metadata)).status).toBe(201);
  });

  it.each(['client_uri', 'logo_uri', 'policy_uri', 'tos_uri', 'initiate_login_uri'])(
    '10.8 refuses user information and wildcards in %s',
    async (name) => {
      for (const uri of ['https://bank.example@evil.example/', 'https://*.evil.example/']) {
        const { status, json } = await register({ [name]: uri });
        expect([status, json.error]).toEqual([400, 'invalid_client_metadata']);
      }
    },
  );

  it.each([
    ['of 65 characters', 'x'.repeat(65)],
    ['of two lines', 'Harmless\nApproved by the service'],
    ['with a line separator', 'Harmless\u2028Approved'],
    ['with a bidi override', 'Harmless \u202eelpmaxe'],
    ['with a bidi isolate', 'Harmless \u2067x'],
  ])('10.8 refuses a client_name %s', async (_, client_name) => {
    const { status, json } = await register({ client_name });
    expect([status, json.error]).toEqual([400, 'invalid_client_metadata']);
  });

  it('10.8 accepts a client_name of 64 characters of any size', async () => {
    expect((await register({ client_name: '🔑'.repeat(64) })).status).toBe(201);
  });
});

describe('the number of clients that register themselves', () => {
  const FULL = 20;
  const neverConsented = "oauth_clients WHERE kind = 'dynamic' AND consented_at IS NULL";

  async function fill(address: string, most = FULL): Promise<string[]> {
    const ids: string[] = [];
    for (let n = 0; n < most; n += 1) {
      const { json } = await registerFrom(address);
      ids.push(json.client_id as string);
    }
    return ids;
  }

  /** Registers a client from an address after all rate limits have been reset. */
  async function registerFrom(address: string): Promise<Answer> {
    await app.dataSource.query('DELETE FROM rate_limits');
    return register({}, address);
  }

  it('10.8 is limited to 20 without consent for an address, and other addresses are not affected', async () => {
    const address = newAddress();
    const ids = await fill(address);
    const refused = await registerFrom(address);
    expect([refused.status, refused.json.error]).toEqual([409, 'invalid_request']);
    expect((await registerFrom(newAddress())).status).toBe(201);

    const { client: user } = await app.enrolled('frees@limits.example');
    await authorize(user, asked(ids[7] ?? ''));
    expect((await registerFrom(address)).status).toBe(201);
    expect((await registerFrom(address)).status).toBe(409);
  });

  /** The registration service as another process on the same database has it. */
  class Replica extends SelfRegistrations {
    constructor() {
      const get = <Wanted>(type: Type<Wanted>) => app.nest.get(type, { strict: false });
      super(app.config, app.dataSource, get(ClientsRepository), get(AuditLog));
    }
  }

  it('10.8 counts a /64 of IPv6 as one address', async () => {
    await fill('2001:db8:7:8::1');
    expect((await registerFrom('2001:db8:7:8:ffff::2')).status).toBe(409);
    expect((await registerFrom('2001:db8:7:9::1')).status).toBe(201);
  });

  it('10.8 is counted exactly when 20 register at once', async () => {
    const address = '2001:db8:1:1::1';
    await fill(address, FULL - 3);
    const origin = { requestId: randomUUID(), ip: address, userAgent: undefined };
    const [one, other] = [new Replica(), new Replica()];
    const runner = app.dataSource.createQueryRunner();
    let outcomes: PromiseSettledResult<void>[];
    try {
      await runner.query('SELECT pg_advisory_lock(7301601)');
      const registering = Array.from({ length: 20 }, (_, n) =>
        (n % 2 === 0 ? one : other).register({
          id: `racing-${n}`,
          metadata: METADATA,
          secret: undefined,
          origin,
        }),
      );
      // one registration of each replica waits for the lock; the others wait in memory, without a
      // connection
      await untilWaiting(app.dataSource, 2);
      await runner.query('SELECT pg_advisory_unlock(7301601)');
      outcomes = await Promise.allSettled(registering);
    } finally {
      await runner.release();
    }
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') {
        expect(outcome.reason).toMatchObject({ code: 'limit_reached' });
      }
    }
    const ofNetwork = `${neverConsented} AND registered_from = '2001:db8:1:1::/64'`;
    expect(await count(app.dataSource, ofNetwork)).toBe(FULL);
  });

  it('10.8 does not delay other addresses when one is full, and the queue is limited', async () => {
    const full = '2001:db8:2:2::1';
    await fill(full);
    const replica = new Replica();
    expect(replica.mostWaiting).toBe(500);
    replica.mostWaiting = atScale({ small: 50, full: 500 });
    const registerAt = (id: string, ip: string) =>
      replica.register({
        id,
        metadata: METADATA,
        secret: undefined,
        origin: { requestId: randomUUID(), ip, userAgent: undefined },
      });
    const runner = app.dataSource.createQueryRunner();
    try {
      await runner.query('SELECT pg_advisory_lock(7301601)');
      const waiting = Array.from({ length: replica.mostWaiting }, (_, n) =>
        registerAt(`waiting-${n}`, `2001:db8:3:${n.toString(16)}::1`),
      );
      await expect.poll(() => replica.waiting, { timeout: 60_000 }).toBe(replica.mostWaiting);
      await expect(registerAt('full', full)).rejects.toMatchObject({ code: 'limit_reached' });
      await expect(registerAt('too-late', '2001:db8:4::1')).rejects.toMatchObject({
        code: 'unavailable',
        retryAfter: 1,
      });
      await runner.query('SELECT pg_advisory_unlock(7301601)');
      await Promise.all(waiting);
    } finally {
      await runner.release();
    }
    await expect(registerAt('in-time', '2001:db8:4::1')).resolves.toBeUndefined();
  });

  it('10.8 is not limited by address in certification test mode', async () => {
    const certified = await startTestApp({
      environment: { SVC_CERTIFICATION_TEST_TOKEN: 'a token that only the suite of tests knows' },
    });
    try {
      const statuses = [];
      for (let n = 0; n <= FULL; n += 1) {
        const { status } = await certified.client().post('/oauth/register', METADATA);
        statuses.push(status);
      }
      // Each client of this loop has sent one request from an address of its own. The next one
      // sends all its requests from one address.
      const one = certified.client();
      for (let n = 0; n <= FULL; n += 1) {
        statuses.push((await one.post('/oauth/register', METADATA)).status);
      }
      expect(new Set(statuses)).toEqual(new Set([201]));
    } finally {
      await certified.close();
    }
  });

  it('10.8 is limited to 100,000 in all: the oldest without consent is removed, and never one with consent', async () => {
    const full = await startTestApp();
    const registrations = full.nest.get(SelfRegistrations, { strict: false });
    expect(registrations.mostInAll).toBe(100_000);
    const most = atScale({ small: 2_000, full: 100_000 });
    registrations.mostInAll = most;
    try {
      const { client: user } = await full.enrolled('keeps@limits.example');
      const [person] = await rows<{ id: string }>(full.dataSource, 'SELECT id FROM users');
      await full.dataSource.query(
        `
        INSERT INTO oauth_clients (id, kind, metadata, created_at)
        SELECT 'old-' || n, 'dynamic', '{}', now() - make_interval(secs => 200000 - n)
        FROM generate_series(1, $1::int) n`,
        [most],
      );
      await full.dataSource.query('VACUUM ANALYZE oauth_clients');
      await recordConsent(full.dataSource.manager, person?.id ?? '', 'old-1');
      await full.nest
        .get(ClientsRepository, { strict: false })
        .touch(full.dataSource.manager, 'old-1');

      const answers = await Promise.all(
        Array.from({ length: 20 }, () =>
          full.client().post('/oauth/register', METADATA, { address: newAddress() }),
        ),
      );
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
      expect(await count(full.dataSource, neverConsented)).toBe(most);
      const gone = await rows<{ n: number }>(
        full.dataSource,
        `SELECT n FROM generate_series(1, 40) n
         WHERE NOT EXISTS (SELECT 1 FROM oauth_clients WHERE id = 'old-' || n) ORDER BY n`,
      );
      // Before, the clients without consent were one fewer than the limit. So one of the 20 fits,
      // and each of the other 19 replaces the oldest one.
      expect(gone.map(({ n }) => n)).toEqual(Array.from({ length: 19 }, (_, n) => n + 2));
      expect(
        await count(
          full.dataSource,
          `audit_events WHERE type = 'oauth_client_deleted' AND details->>'reason' = 'limit'`,
        ),
      ).toBe(19);
      expect((await user.get('/', { address: newAddress() })).status).toBe(200);
    } finally {
      await full.close();
    }
  });
});
