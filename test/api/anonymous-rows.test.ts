import { ThrottlerStorage } from '@nestjs/throttler';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { RoutePolicies, type CompiledRoute } from '#platform/http/routing/route-policies.js';
import type { Buckets } from '#platform/rate-limit/buckets/buckets.js';
import { siteOf } from '#platform/rate-limit/networks.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { addApplication } from '../support/applications.js';
import { newAddress, type Answer, type Client } from '../support/client.js';
import { CALLBACK, assertionFields, newClientKeys, newPkce } from '../support/oauth-flow.js';
import { rows } from '../support/rows.js';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const OWNER = 'owner@rows.example';

/** Sends a request without a credential. */
type Anonymous = (client: Client) => Promise<{ readonly status: number }>;

describe('the rows that an IPv6 /48 writes without a user or an authenticated client', () => {
  let app: TestApp;
  let buckets: Buckets;
  let publicId: string;
  let registered: Client;
  let counts: string;
  beforeAll(async () => {
    app = await startTestApp();
    buckets = app.nest.get<Buckets>(ThrottlerStorage);
    const tables = await rows<{ name: string }>(
      app.dataSource,
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'rate_limits'",
    );
    counts = tables.map(({ name }) => `(SELECT count(*) FROM "${name}")`).join(' + ');
    ({ client: registered } = await app.enrolled(OWNER));
    const metadata = { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none' };
    ({ clientId: publicId } = await addApplication(app, metadata, { owner: OWNER }));
  });
  afterAll(() => app.close());
  afterEach(() => {
    vi.restoreAllMocks();
  });

  let sites = 0;
  /** Returns an IPv6 address in a /48 that no other test uses. */
  const newSite = () => `2001:db8:${(0xa000 + (sites += 1)).toString(16)}:1::1`;
  const at = (address: string) => Object.assign(app.client(), { address });
  const form = (client: Client, path: string, fields: Readonly<Record<string, string>>) =>
    client.send('POST', path, { headers: FORM, body: new URLSearchParams(fields).toString() });

  const authorization = () => ({
    client_id: publicId,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid',
    code_challenge: newPkce().challenge,
    code_challenge_method: 'S256',
  });
  const query = (fields: Readonly<Record<string, string>>) =>
    new URLSearchParams(fields).toString();

  /**
   * Requests that insert rows, by route. Each route that is not listed gets a request with an empty
   * body.
   */
  const WRITING: Readonly<Record<string, Anonymous>> = {
    'POST /oauth/register': (client) =>
      client.post('/oauth/register', {
        redirect_uris: [CALLBACK],
        token_endpoint_auth_method: 'none',
      }),
    'POST /oauth/device': (client) =>
      form(client, '/oauth/device', { client_id: 'svc-cli', scope: 'openid' }),
    'POST /oauth/par': (client) => form(client, '/oauth/par', authorization()),
    'GET /oauth/authorize': (client) => client.get(`/oauth/authorize?${query(authorization())}`),
    'POST /oauth/authorize': (client) =>
      form(client, '/oauth/authorize', { ...authorization(), state: 's'.repeat(3000) }),
    'GET /oauth/logout': (client) => client.get('/oauth/logout'),
    'GET /login': (client) => client.get('/login?provider=demo'),
    'POST /device': (client) =>
      form(client, '/device', { user_code: 'BBBB-BBBB', provider: 'demo' }),
    'POST /login/webauthn/complete': (client) =>
      client.post('/login/webauthn/complete', { state: 'x', credential: {} }),
    'POST /oauth/token': (client) =>
      form(client, '/oauth/token', {
        grant_type: 'authorization_code',
        client_id: publicId,
        code: 'unknown',
        code_verifier: 'v'.repeat(43),
        redirect_uri: CALLBACK,
      }),
    'GET /oauth/callback': (client) => client.get('/oauth/callback?state=x&code=x'),
    'POST /saml/acs': (client) =>
      form(client, '/saml/acs', { SAMLResponse: 'eA==', RelayState: 'x' }),
  };

  const empty =
    ({ method, template }: CompiledRoute): Anonymous =>
    (client) =>
      client.send(method, template.replaceAll(/:\w+/g, 'x'), method === 'GET' ? {} : { body: {} });

  async function rowCount(): Promise<number> {
    const [found] = await rows<{ n: number }>(app.dataSource, `SELECT (${counts})::int AS n`);
    return found?.n ?? 0;
  }

  /**
   * Sends a request from a /48 of its own. Returns the number of rows that the request added, and
   * the rate-limit buckets that were charged.
   */
  async function effectOf(send: Anonymous, address = newSite()) {
    const charge = vi.spyOn(buckets, 'charge');
    const before = await rowCount();
    const { status } = await send(at(address));
    const added = (await rowCount()) - before;
    await new Promise(setImmediate); // the service charges a bucket after it has sent the response
    const charged = charge.mock.calls.map(([hit]) => hit.bucket);
    charge.mockRestore();
    return { status, added, charged, address };
  }

  it('count, on every compiled route that can be called without a credential', async () => {
    const routes = app.nest
      .get(RoutePolicies)
      .routes.filter(
        ({ policy: { auth } }) => auth.session === 'none' || auth.session === 'optional',
      );
    expect(routes.length).toBeGreaterThan(60);
    const names = routes.map(({ method, template }) => `${method} ${template}`);
    expect(Object.keys(WRITING).filter((name) => !names.includes(name))).toEqual([]);
    const uncounted: unknown[] = [];
    const counted: string[] = [];
    for (const [index, route] of routes.entries()) {
      const name = names[index] ?? '';
      const { status, added, charged, address } = await effectOf(WRITING[name] ?? empty(route));
      if (charged.includes(siteOf(address, 'rows').bucket)) counted.push(name);
      if (added > 0 && charged.length === 0) uncounted.push({ name, status, added });
    }
    expect(uncounted).toEqual([]);
    const declared = names.filter((_, index) => routes[index]?.policy.anonymousRows);
    expect(counted.toSorted()).toEqual(declared.toSorted());
  });

  it('are refused at the limit from another /64 too, with a wait that is true, and other sites go on', async () => {
    const address = newSite();
    const { bucket } = siteOf(address, 'rows');
    const peek = buckets.peek.bind(buckets);
    vi.spyOn(buckets, 'peek').mockImplementation((hit) =>
      hit.bucket === bucket ? { allowed: false, remaining: 0, retryAfter: 1500 } : peek(hit),
    );
    const declared = app.nest
      .get(RoutePolicies)
      .routes.filter(({ policy }) => policy.anonymousRows);
    for (const [n, { method, template }] of declared.entries()) {
      const name = `${method} ${template}`;
      const neighbour = at(address.replace(':1::1', `:${(n + 2).toString(16)}::1`));
      const { status, headers } = (await (WRITING[name] as Anonymous)(neighbour)) as Answer;
      const waits = [headers.get('retry-after'), headers.get('x-ratelimit-after')];
      expect([name, status, ...waits]).toEqual([name, 429, '2', '2']);
    }
    // A login is admitted: it inserts no such row, and failed logins have a bucket of their own.
    const login = at(address.replace(':1::1', ':ffff::1'));
    expect((await login.post('/login/webauthn/start', {})).status).toBe(200);
    expect((await (WRITING['POST /oauth/device'] as Anonymous)(at(newSite()))).status).toBe(200);
  });

  it('do not count for a user who is logged in, or for an application that authenticates', async () => {
    const keys = await newClientKeys();
    const { clientId } = await addApplication(
      app,
      {
        redirect_uris: [CALLBACK],
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'ES256',
        jwks: { keys: [keys.jwk] },
      },
      { owner: OWNER },
    );
    const pushed = await effectOf(async (client) =>
      form(client, '/oauth/par', {
        ...authorization(),
        ...(await assertionFields(app, clientId, keys)),
      }),
    );
    expect(pushed).toMatchObject({ status: 201, charged: [] });
    expect(pushed.added).toBeGreaterThan(0);
    const authorized = await effectOf(() =>
      registered.get(`/oauth/authorize?${query(authorization())}`, { address: newSite() }),
    );
    expect(authorized).toMatchObject({ status: 303, charged: [] });
    expect(authorized.added).toBeGreaterThan(0);
  });

  it('count for a client that registered itself, although it authenticates', async () => {
    const { json } = await app
      .client()
      .post(
        '/oauth/register',
        { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'client_secret_post' },
        { address: newAddress() },
      );
    const pushed = await effectOf((client) =>
      form(client, '/oauth/par', {
        ...authorization(),
        client_id: json.client_id as string,
        client_secret: json.client_secret as string,
      }),
    );
    expect(pushed.status).toBe(201);
    expect(pushed.charged).toEqual([siteOf(pushed.address, 'rows').bucket]);
  });
});
