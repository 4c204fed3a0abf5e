import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TierName } from '#platform/http/routing/route-policy.js';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { runScript, type ChildScript } from '../support/child-script.js';
import { Client, type Answer } from '../support/client.js';
import { prepareDataDir } from '../support/cluster-template.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startDatabaseProxy, type DatabaseProxy } from '../support/database-proxy.js';
import { freePort } from '../support/free-port.js';
import { MovableClock } from '../support/movable-clock.js';
import type { ReplicaAnswer, ReplicaArgument } from '../support/replica.js';
import { atScale } from '../support/scale.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const LIMIT = 'x-ratelimit-limit';
const REMAINING = 'x-ratelimit-remaining';

/**
 * How many times a client is refused and then waits for the time in `retry-after`, in real time.
 */
const ROUNDS = atScale({ small: 1, full: 5 });

/** Returns the limit and the remaining requests that a response states. */
const headersOf = ({ headers }: Answer) => [headers.get(LIMIT), headers.get(REMAINING)];

/**
 * Checks the remaining tokens after `asked` requests since `begun`. On a slow machine, tokens that
 * were restored meanwhile may count too.
 */
function expectLeft(left: unknown, asked: number, tier: TierName, begun: number): void {
  const { burst, interval } = TIERS[tier];
  const back = Math.floor((performance.now() - begun) / interval);
  expect(Number(left)).toBeGreaterThanOrEqual(burst - asked);
  expect(Number(left)).toBeLessThanOrEqual(Math.min(burst - 1, burst - asked + back));
}

/** Begins a login: a request of the Authentication tier that needs no session. */
const startLogin = (client: Client) => client.post('/login/webauthn/start', {});

/** Sends requests until one gets 429, and returns this response. */
async function exhaust(client: Client, ask: (client: Client) => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask(client);
    if (answer.status === 429) return answer;
  }
}

/** Sends requests until a refusal demands a wait of more than `seconds`. */
async function exhaustFor(
  seconds: number,
  client: Client,
  ask: (client: Client) => Promise<Answer>,
): Promise<void> {
  for (;;) {
    const refusal = await exhaust(client, ask);
    if (Number(refusal.headers.get('retry-after')) > seconds) return;
  }
}

/**
 * Sends requests to the servers in turn until one is refused, waits for exactly the announced time,
 * and tries the next server. Returns how many of these tries were refused.
 */
async function brokenPromises(clients: readonly Client[], rounds: number): Promise<number> {
  let broken = 0;
  let turn = 0;
  const next = (_: Client) => startLogin(clients[(turn += 1) % clients.length] ?? _);
  for (let round = 0; round < rounds; round += 1) {
    const [first] = clients;
    if (!first) throw new Error('nobody asks');
    const refusal = await exhaust(first, next);
    await delay(Number(refusal.headers.get('retry-after')) * 1000);
    if ((await next(first)).status === 429) broken += 1;
  }
  return broken;
}

/** An application that trusts proxies on loopback and in another network. */
let behindProxies: TestApp;
beforeAll(async () => {
  behindProxies = await startTestApp({
    environment: { SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1,192.0.2.0/24' },
  });
});
afterAll(() => behindProxies.close());

describe('every route has the limit of its tier', () => {
  it('counts down, refuses requests beyond the burst, and states the true wait', async () => {
    const client = behindProxies.client();
    const begun = performance.now();
    for (let asked = 1; asked <= 8; asked += 1) {
      const answer = await startLogin(client);
      const [limit, left] = headersOf(answer);
      expect([answer.status, limit]).toEqual([200, '8']);
      expectLeft(left, asked, 'authentication', begun);
    }
    const refusal = await exhaust(client, startLogin);
    expect(headersOf(refusal)).toEqual(['8', '0']);
    expect(refusal.headers.get('retry-after')).toMatch(/^[12]$/);
    expect(refusal.headers.get('x-ratelimit-after')).toBe(refusal.headers.get('retry-after'));
    expect(refusal.headers.get('content-type')).toContain('application/problem+json');
    expect(refusal.json).toMatchObject({ status: 429, code: 'rate_limited' });
  });

  it.each([
    ['a 401', 401, 'GET', '/v1/keys', undefined, 20],
    ['a 403', 403, 'POST', '/logout', undefined, 20],
    ['a 404', 404, 'GET', '/scim/v2/Nothing', undefined, 20],
    ['a 404 for a writer', 404, 'POST', '/admin/nothing', '{}', 20],
    ['a 405', 405, 'DELETE', '/v1/keys', undefined, 20],
    ['a 400', 400, 'POST', '/login/webauthn/start', '{', 8],
    ['a 413', 413, 'POST', '/login/webauthn/start', `"${'x'.repeat(33 * 1024)}"`, 8],
  ])('%s carries the headers and costs a token', async (_, status, method, path, body, limit) => {
    const client = behindProxies.client();
    // The logout has a foreign origin, so that it is refused.
    const options = { body, headers: path === '/logout' ? { origin: 'https://evil.example' } : {} };
    if (path === '/logout') client.setCookie('svc_session', 'x');
    const begun = performance.now();
    for (const asked of [1, 2]) {
      const answer = await client.send(method, path, options);
      const [stated, left] = headersOf(answer);
      expect([answer.status, stated]).toEqual([status, String(limit)]);
      expectLeft(left, asked, limit === 8 ? 'authentication' : 'general', begun);
    }
  });

  it.each([
    '/',
    '/health',
    '/health/ready',
    '/static/app.css',
    '/oauth/callback',
    '/nothing',
    '/v1',
  ])('10.words %s has no limit, and states the General tier without consuming it', async (path) => {
    const client = behindProxies.client();
    await client.get('/v1/keys');
    const answers = await Promise.all(Array.from({ length: 40 }, () => client.get(path)));
    for (const answer of answers) {
      expect(answer.status).not.toBe(429);
      expect(headersOf(answer)).toEqual(['20', expect.toBeOneOf(['19', '20'])]);
    }
    const stranger = behindProxies.client();
    expect(headersOf(await stranger.get(path))).toEqual(['20', '20']);
  });

  it('capitals and a trailing slash lead to the same bucket', async () => {
    const client = behindProxies.client();
    const begun = performance.now();
    for (const [index, path] of ['/v1/keys', '/V1/KEYS', '/v1/keys/', '/V1/Keys/'].entries()) {
      const [limit, left] = headersOf(await client.get(path));
      expect(limit).toBe('20');
      expectLeft(left, index + 1, 'general', begun);
    }
  });

  it('the tiers of one client are independent, and a page is refused with a page', async () => {
    const client = behindProxies.client();
    await exhaust(client, startLogin);
    const page = await exhaust(client, () => client.get('/login'));
    expect(page.headers.get('content-type')).toContain('text/html');
    expect((await client.post('/v1/credentials/ssh', {})).status).toBe(401);
  });

  it('of 60 requests at once exactly a burst is admitted', async () => {
    const client = behindProxies.client();
    const begun = performance.now();
    const answers = await Promise.all(Array.from({ length: 60 }, () => client.get('/v1/keys')));
    const seconds = (performance.now() - begun) / 1000;
    const letThrough = answers.filter(({ status }) => status !== 429);
    expect(letThrough.length).toBeGreaterThanOrEqual(20);
    expect(letThrough.length).toBeLessThanOrEqual(20 + Math.ceil(seconds));
    const left = letThrough.slice(0, 20).map((answer) => Number(headersOf(answer)[1]));
    expect(Math.max(...left)).toBe(19);
  });

  it('is refused before its body is read', async () => {
    const client = behindProxies.client();
    await exhaustFor(1, client, startLogin);
    const status = await new Promise((resolve, reject) => {
      const sent = httpRequest(`${behindProxies.baseUrl}/login/webauthn/start`, {
        method: 'POST',
        headers: {
          'x-forwarded-for': client.address,
          'content-type': 'application/json',
          'content-length': 30_000,
        },
      });
      sent.once('response', (response) => {
        resolve(response.statusCode);
        sent.destroy();
      });
      sent.once('error', reject);
      sent.write('{'); // the rest of the body is never sent
    });
    expect(status).toBe(429);
  });
});

describe('a client is identified by its address', () => {
  /** Sends a request with an `X-Forwarded-For`. Returns the remaining tokens of its client. */
  async function left(forwarded: string): Promise<number> {
    const headers = { 'x-forwarded-for': forwarded };
    return Number(headersOf(await behindProxies.client().get('/v1/keys', { headers }))[1]);
  }

  it('addresses left of the one that the proxy saw change nothing', async () => {
    const begun = performance.now();
    expectLeft(await left('203.0.113.1'), 1, 'general', begun);
    for (let n = 1; n <= 5; n += 1) {
      expectLeft(await left(`6.6.6.${n}, 203.0.113.1`), n + 1, 'general', begun);
    }
    expect(await left('6.6.6.1')).toBe(19);
    expectLeft(await left('not an address, 203.0.113.1, 192.0.2.9'), 7, 'general', begun);
  });

  it('malformed headers are ignored: such requests share the bucket of the peer', async () => {
    const begun = performance.now();
    const asked = 20 - (await left('unknown'));
    expectLeft(await left('203.0.113.2, garbage'), asked + 1, 'general', begun);
    expectLeft(await left('192.0.2.1, 192.0.2.2'), asked + 2, 'general', begun);
  });

  it('an IPv6 subscriber is a /64', async () => {
    const begun = performance.now();
    expectLeft(await left('2001:db8:1:2::1'), 1, 'general', begun);
    expectLeft(await left('2001:DB8:1:2:ffff:ffff:ffff:ffff'), 2, 'general', begun);
    expectLeft(await left('2001:0db8:0001:0002::77'), 3, 'general', begun);
    expect(await left('2001:db8:1:3::1')).toBe(19);
  });

  it('an IPv4 address is the same when it is written as IPv6', async () => {
    const begun = performance.now();
    expectLeft(await left('203.0.113.3'), 1, 'general', begun);
    expectLeft(await left('::ffff:203.0.113.3'), 2, 'general', begun);
    expectLeft(await left('::ffff:cb00:7103'), 3, 'general', begun);
    expect(await left('::ffff:203.0.113.4')).toBe(19);
  });
});

describe('a service without proxies', () => {
  let app: TestApp;

  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_TRUSTED_PROXIES: '' } });
  });
  afterAll(() => app.close());

  /**
   * Sends a request from a loopback address of this machine. Returns the remaining tokens that the
   * response states.
   */
  function leftFrom(localAddress: string, forwarded = ''): Promise<string | undefined> {
    const { port, host } = new URL(app.baseUrl);
    return new Promise((resolve, reject) => {
      const headers = { host, ...(forwarded === '' ? {} : { 'x-forwarded-for': forwarded }) };
      httpRequest({ host: '127.0.0.1', port, localAddress, path: '/v1/keys', headers })
        .once('response', (response) => {
          response.resume();
          resolve(response.headers[REMAINING]?.toString());
        })
        .once('error', reject)
        .end();
    });
  }

  it('gives each IPv4 client of the dual-stack listener its own bucket', async () => {
    expect(app.config.http.listen.host).toBe('::');
    const begun = performance.now();
    expectLeft(await leftFrom('127.0.0.2'), 1, 'general', begun);
    expect(await leftFrom('127.0.0.3')).toBe('19');
    expectLeft(await leftFrom('127.0.0.2'), 2, 'general', begun);
  });

  it('gives a client no other bucket because of a header', async () => {
    const begun = performance.now();
    expectLeft(await leftFrom('127.0.0.4', '203.0.113.9'), 1, 'general', begun);
    expectLeft(await leftFrom('127.0.0.4', '203.0.113.10'), 2, 'general', begun);
  });
});

describe('two processes on one PostgreSQL', () => {
  let database: TestDatabase;
  let dataDir: string;
  let replicas: ChildScript<ReplicaAnswer>[];
  let baseUrls: string[];

  beforeAll(async () => {
    database = await createTestDatabase();
    dataDir = await makeTemporaryDirectory(); // both replicas read one SSH CA key from it
    const argument: ReplicaArgument = {
      database: { url: database.url },
      environment: { SVC_DATA_DIR: dataDir },
    };
    replicas = [runScript('replica.ts', argument), runScript('replica.ts', argument)];
    const answers = await Promise.all(replicas.map(({ answer }) => answer));
    baseUrls = answers.map(({ baseUrl }) => baseUrl);
  });
  afterAll(async () => {
    await Promise.all(replicas.map((replica) => replica.finish()));
    await database.drop();
    await removeDirectory(dataDir);
  });

  /** Returns a client for each replica, all with one IP address. */
  function everywhere(): Client[] {
    const [first, ...others] = baseUrls.map((baseUrl) => new Client(baseUrl));
    if (!first) throw new Error('there is no replica');
    return [first, ...others.map(({ baseUrl }) => new Client(baseUrl, first.address))];
  }

  it('admit together no more requests than one process', async () => {
    const clients = everywhere();
    const begun = performance.now();
    const statuses: number[] = [];
    const ask = async (client: Client) => statuses.push((await client.get('/v1/keys')).status);
    await Promise.all(clients.flatMap((client) => Array.from({ length: 40 }, () => ask(client))));
    for (let n = 0; n < 100; n += 1) await Promise.all(clients.map(ask));
    const seconds = (performance.now() - begun) / 1000;
    const letThrough = statuses.filter((status) => status !== 429).length;
    expect(letThrough).toBeGreaterThanOrEqual(20);
    expect(letThrough).toBeLessThanOrEqual(20 + Math.ceil(seconds));
  });

  it('never refuse a client twice in a row that waits for the announced time, to the second', async () => {
    expect(await brokenPromises(everywhere(), ROUNDS)).toBe(0);
  });
});

describe('a single process', () => {
  const clients = atScale({ small: 2000, full: 1_000_000 });
  let dataDir: string;
  let baseUrl: string;
  let server: ChildScript<{ residentBytes: number; sharing: number }>;

  beforeAll(async () => {
    dataDir = await makeTemporaryDirectory();
    await prepareDataDir(join(dataDir, 'data'));
    baseUrl = `http://localhost:${await freePort()}`;
    const [provider] = behindProxies.config.upstream.providers;
    if (provider?.type !== 'oidc') throw new Error('the application has no OpenID provider');
    const environment = {
      SVC_BASE_URL: baseUrl,
      SVC_LISTEN_ADDR: `[::]:${new URL(baseUrl).port}`,
      // not the shared database: this server has an embedded one
      SVC_DATA_DIR: join(dataDir, 'data'),
      SVC_JWT_SECRET: behindProxies.config.secrets.root,
      SVC_TRUSTED_PROXIES: behindProxies.config.http.trustedProxies.join(),
      SVC_IDPS: 'demo',
      SVC_IDP_DEMO_TYPE: 'oidc',
      SVC_IDP_DEMO_ISSUER: provider.issuer,
      SVC_IDP_DEMO_CLIENT_ID: provider.clientId,
      SVC_IDP_DEMO_CLIENT_SECRET: provider.clientSecret,
    };
    server = runScript('crowded-server.js', { environment, clients });
    await server.answer;
  });
  afterAll(async () => {
    await server.finish();
    await removeDirectory(dataDir);
  });

  const crowd = clients === 1_000_000 ? 'a million' : clients.toLocaleString('en');
  it(`stays under 300 MB after ${crowd} clients, each with its own bucket`, async () => {
    const { residentBytes, sharing } = await server.answer;
    expect(residentBytes / 1e6).toBeLessThan(300);
    expect(sharing).toBe(0);
  });

  it('never refuses a client twice in a row that waits for the announced time, to the second', async () => {
    expect(await brokenPromises([new Client(baseUrl)], ROUNDS)).toBe(0);
  });
});

describe('while the database is away', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  let app: TestApp;
  const clock = new MovableClock();

  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await startDatabaseProxy(database.url);
    app = await startTestApp({ database: proxy, clock });
  });
  afterAll(async () => {
    await app.close();
    await proxy.close();
    await database.drop();
  });

  it('limits hold in buckets of the process, and earlier denials stay in force', async () => {
    const early = app.client();
    await exhaustFor(1, early, startLogin);
    await proxy.down();
    expect((await startLogin(early)).status).toBe(429);
    const client = app.client();
    const begun = performance.now();
    let letThrough = 0;
    for (let n = 0; n < 30; n += 1) {
      const answer = await startLogin(client);
      if (answer.status !== 429) letThrough += 1;
    }
    const seconds = (performance.now() - begun) / 1000;
    expect(letThrough).toBeGreaterThanOrEqual(8);
    expect(letThrough).toBeLessThanOrEqual(8 + Math.ceil(seconds / 2));
  });

  it('a client that waits as long as it was told is let through by the buckets of the process', async () => {
    const client = app.client();
    const refusal = await exhaust(client, startLogin);
    clock.advance(Number(refusal.headers.get('retry-after')) * 1000);
    expect((await startLogin(client)).status).toBe(200);
  });

  it('is rolled back with the transaction of the caller', async () => {
    await proxy.up();
    const client = app.client();
    await expect
      .poll(
        async () => {
          await client.get('/v1/keys');
          return app.dataSource.query('SELECT 1 FROM rate_limits WHERE bucket = $1', [
            `general ${client.address}`,
          ]);
        },
        { interval: 250 },
      )
      .toHaveLength(1);
  });
});

describe('in certification test mode', () => {
  it('10.words no request is limited, and the burst of the General tier is stated', async () => {
    const token = 'a certification token of 32 letters and more';
    const app = await startTestApp({ environment: { SVC_CERTIFICATION_TEST_TOKEN: token } });
    try {
      const client = app.client();
      const answers = await Promise.all(Array.from({ length: 40 }, () => startLogin(client)));
      for (const answer of answers) {
        expect([answer.status, ...headersOf(answer)]).toEqual([200, '20', '20']);
      }
    } finally {
      await app.close();
    }
  });
});
