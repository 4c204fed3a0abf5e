import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { ThrottlerStorage } from '@nestjs/throttler';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Buckets } from '#platform/rate-limit/buckets/buckets.js';
import type { Decision } from '#platform/gcra/gcra.js';
import { siteOf } from '#platform/rate-limit/networks.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { CALLBACK } from '../support/oauth-flow.js';

describe('the failed attempts of an IPv6 /48', () => {
  let app: TestApp;
  let buckets: Buckets;
  beforeAll(async () => {
    app = await startTestApp();
    buckets = app.nest.get<Buckets>(ThrottlerStorage);
  });
  afterAll(() => app.close());
  afterEach(() => {
    vi.restoreAllMocks();
  });

  let sites = 0;
  /** Returns an IPv6 address in a /48 that no other test uses. */
  const newSite = () => `2001:db8:${(sites += 1).toString(16)}:1::1`;
  const client = (address: string) => Object.assign(app.client(), { address });

  const register = (address: string) =>
    client(address).post('/oauth/register', {
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'none',
    });
  const form = (address: string, path: string, fields: Readonly<Record<string, string>>) =>
    client(address).send('POST', path, {
      body: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });

  it.each([
    [
      'a login that fails',
      400,
      (address: string) =>
        client(address).post('/login/webauthn/complete', { state: 'x', credential: {} }),
    ],
    [
      'an unknown client',
      401,
      (address: string) =>
        form(address, '/oauth/token', { grant_type: 'authorization_code', client_id: 'nobody' }),
    ],
    [
      'an unknown code',
      400,
      async (address: string) =>
        form(address, '/oauth/token', {
          grant_type: 'authorization_code',
          client_id: (await register(newAddress())).json.client_id,
          code: 'unknown',
          code_verifier: 'v'.repeat(43),
          redirect_uri: CALLBACK,
        }),
    ],
    [
      'a wrong registration token',
      401,
      (address: string) =>
        client(address).get('/oauth/register/x', { headers: { authorization: 'Bearer x' } }),
    ],
  ])('10.9 count %s', async (_, status, attempt) => {
    const address = newSite();
    const charge = vi.spyOn(buckets, 'charge');
    expect((await attempt(address)).status).toBe(status);
    await vi.waitFor(() => expect(charge).toHaveBeenCalledOnce(), 90_000);
    expect(charge.mock.calls[0]?.[0].bucket).toBe(siteOf(address, 'failures').bucket);
  });

  it('10.9 count neither successes nor requests that a limit refused', async () => {
    const address = newSite();
    const browser = client(address);
    const charge = vi.spyOn(buckets, 'charge');
    for (let n = 0; n < 12; n += 1) await browser.post('/login/webauthn/start', {});
    expect(charge).not.toHaveBeenCalled();
  });

  /** Makes the bucket of failures of an address's /48 report that one more failure is allowed. */
  function leaveOne(address: string): void {
    const peek = buckets.peek.bind(buckets);
    vi.spyOn(buckets, 'peek').mockImplementation((hit) =>
      hit.bucket === siteOf(address, 'failures').bucket
        ? { allowed: true, remaining: 1, retryAfter: 0 }
        : peek(hit),
    );
  }

  /**
   * Holds requests while they check the limit of their own address. `areThere` resolves when
   * `count` of them wait, and `goOn` admits them.
   */
  function park(count: number) {
    const answer = Promise.withResolvers<Decision>();
    const taken = vi.spyOn(buckets, 'take').mockImplementation(() => answer.promise);
    return {
      areThere: vi.waitFor(() => {
        expect(taken).toHaveBeenCalledTimes(count);
      }, 90_000),
      goOn: () => {
        taken.mockRestore();
        answer.resolve({ allowed: true, remaining: 7, retryAfter: 0 });
      },
    };
  }

  it('10.9 do not exceed the limit when many attempts check their own limits at once', async () => {
    const address = newSite();
    leaveOne(address);
    const parked = park(5);
    const attempts = Array.from({ length: 5 }, (_, n) =>
      client(address.replace(':1::1', `:${n + 2}::1`)).post('/login/webauthn/start', {}),
    );
    await parked.areThere;
    parked.goOn();
    const statuses = (await Promise.all(attempts)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, 429, 429, 429, 429]);
  });

  it('10.9 release an attempt whose connection ends before its own limit is known', async () => {
    const address = newSite();
    leaveOne(address);
    const parked = park(1);
    const { host, port } = new URL(app.baseUrl);
    const socket = connect({ host: 'localhost', port: Number(port) });
    const head = ['POST /login/webauthn/start HTTP/1.1', `Host: ${host}`];
    socket.write(
      [...head, `X-Forwarded-For: ${address}`, 'Content-Length: 0', '', ''].join('\r\n'),
    );
    await parked.areThere;
    const lines = app.log.length;
    socket.destroy();
    await vi.waitFor(() => {
      expect(app.log.slice(lines).join('')).toContain('/login/webauthn/start');
    }, 90_000);
    parked.goOn();
    await setImmediate();
    expect((await client(address).post('/login/webauthn/start', {})).status).toBe(200);
  });

  /**
   * Makes the bucket of failures of an address's /48 refuse, with a wait of so many milliseconds.
   */
  function mustWait(address: string, retryAfter: number): void {
    vi.restoreAllMocks();
    const peek = buckets.peek.bind(buckets);
    vi.spyOn(buckets, 'peek').mockImplementation((hit) =>
      hit.bucket === siteOf(address, 'failures').bucket
        ? { allowed: false, remaining: 0, retryAfter }
        : peek(hit),
    );
  }

  it('10.9 block the other addresses of the network, state the true wait, and affect no other network', async () => {
    const address = newSite();
    mustWait(address, 1500);
    const neighbour = client(address.replace(':1::1', ':ffff::1'));
    const refused = await neighbour.post('/login/webauthn/start', {});
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('2');
    expect(refused.headers.get('x-ratelimit-after')).toBe('2');
    expect(refused.headers.get('x-ratelimit-remaining')).toBe('0');
    expect((await neighbour.get('/v1/keys')).status).toBe(401);
    expect((await client(newSite()).post('/login/webauthn/start', {})).status).toBe(200);
    expect((await app.client().post('/login/webauthn/start', {})).status).toBe(200);
    vi.restoreAllMocks();
    const after = await neighbour.post('/login/webauthn/start', {});
    // the response shows the client's own bucket, which has 7 left
    expect(after.headers.get('x-ratelimit-remaining')).toBe('7');
  });

  it('10.9 announce the longer wait of both buckets', async () => {
    const address = newSite();
    const browser = client(address);
    const wait = async () =>
      Number((await browser.post('/login/webauthn/start', {})).headers.get('retry-after'));
    while ((await wait()) === 0);
    mustWait(address, 15_000);
    expect(await wait()).toBe(15);
    mustWait(address, 1);
    expect(await wait()).toBeOneOf([1, 2]);
    vi.restoreAllMocks();
    expect(await wait()).toBeOneOf([1, 2]);
  });
});
