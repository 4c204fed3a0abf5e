import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import {
  RoutePolicies,
  type CompiledRoute,
} from '../../../src/platform/http/routing/route-policies.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { cliToken } from '../../support/cli-token.js';
import { addApplication } from '../../support/applications.js';
import { assigned } from '../../support/domains.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { repeatMigration } from '../../support/migration-data.js';
import { ath, newDpopKey, postForm, type DpopKey } from '../../support/oauth-flow.js';
import { count, rows } from '../../support/rows.js';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const ADA = 'ada@device-sessions.example'; // the first user of the organization is its admin
const ABSENT = '00000000-0000-7000-8000-000000000000';
const EVERY_SCOPE = 'openid email profile svc:credentials svc:applications svc:admin';

let app: TestApp;
let ada: Client;
let adasKey: SoftwareKey;
let eve: Client;
let television: string;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada, key: adasKey } = await app.enrolled(ADA));
  ({ client: eve } = await app.enrolled('eve@device-sessions-two.example'));
  ({ clientId: television } = await addApplication(
    app,
    {
      client_name: 'Television',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: [DEVICE_GRANT],
      response_types: [],
      redirect_uris: [],
    },
    { owner: ADA },
  ));
});
afterAll(() => app.close());
beforeEach(async () => {
  await app.dataSource.query("UPDATE sessions SET auth_time = now() WHERE level = 'verified'");
  await app.dataSource.query('UPDATE organizations SET device_grant = true');
});

interface Codes {
  readonly device_code: string;
  readonly user_code: string;
}

async function newCodes(
  fields: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<Codes> {
  const asked = { client_id: 'svc-cli', scope: EVERY_SCOPE, ...fields };
  const answer = await postForm(app, '/oauth/device', asked, headers);
  expect([answer.status, answer.json]).toEqual([200, expect.any(Object)]);
  return answer.json as Codes;
}

const show = (browser: Client, { user_code }: Codes) =>
  browser.send('POST', '/device', {
    address: newAddress(),
    body: new URLSearchParams({ user_code }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });

const approve = (browser: Client, { user_code }: Codes) =>
  browser.post('/device/approve', { user_code }, { address: newAddress() });

async function poll(
  { device_code }: Codes,
  dpop?: DpopKey,
  fields: Record<string, string> = {},
): Promise<Answer> {
  const proof = dpop && { dpop: await dpop.proof('POST', `${app.baseUrl}/oauth/token`) };
  const asked = { grant_type: DEVICE_GRANT, device_code, client_id: 'svc-cli', ...fields };
  return postForm(app, '/oauth/token', asked, proof);
}

/**
 * Gets a token of svc-cli by a device code that the user of a browser approves. Returns the token,
 * its response and its DPoP key.
 */
async function deviceToken(browser = ada) {
  const dpop = await newDpopKey();
  const codes = await newCodes();
  expect((await approve(browser, codes)).status).toBe(200);
  const answer = await poll(codes, dpop);
  expect([answer.status, answer.json]).toEqual([200, expect.any(Object)]);
  return { answer, dpop, token: String(answer.json.access_token) };
}

async function call(
  { token, dpop }: { readonly token: string; readonly dpop: DpopKey },
  method: string,
  path: string,
  body: object = {},
): Promise<Answer> {
  const proof = await dpop.proof(method, app.baseUrl + path, { ath: ath(token) });
  return app.client().send(method, path, {
    address: newAddress(),
    headers: { authorization: `DPoP ${token}`, dpop: proof, origin: '' },
    ...(method === 'GET' ? {} : { body }),
  });
}

const setting = (isOn: boolean) =>
  ada.send('PATCH', '/api/v1/org', { body: { device_grant: isOn }, address: newAddress() });

describe('the device code of svc-cli', () => {
  it('gives openid and svc:credentials at most, for an hour, in a session of its own', async () => {
    const { answer } = await deviceToken();
    expect(answer.json).toMatchObject({ scope: 'openid svc:credentials', token_type: 'DPoP' });
    expect(answer.json.expires_in).toBeLessThanOrEqual(3600);
    expect(answer.json.expires_in).toBeGreaterThan(3500);
    const [session] = await rows(
      app.dataSource,
      `SELECT round(extract(epoch FROM expires_at - created_at))::int AS seconds, client_id, of_device
       FROM sessions ORDER BY created_at DESC LIMIT 1`,
    );
    expect(session).toEqual({ seconds: 3600, client_id: 'svc-cli', of_device: true });
  });

  it('gives no token for a resource, which a stranger could name', async () => {
    const codes = await newCodes({ resource: 'https://orders.example' });
    expect((await show(ada, codes)).text).not.toContain('orders.example');
    expect((await approve(ada, codes)).status).toBe(200);
    const answer = await poll(codes, await newDpopKey(), { resource: 'https://orders.example' });
    expect([answer.status, answer.json.error]).toEqual([400, 'invalid_target']);
  });

  it('gives no more where another replica approved every scope before its upgrade', async () => {
    const codes = await newCodes();
    await approve(ada, codes);
    await app.dataSource.query(
      `UPDATE oauth_artifacts SET payload = payload || jsonb_build_object('scope', $1::text) WHERE user_code = $2`,
      [EVERY_SCOPE, codes.user_code.replace('-', '')],
    );
    await app.dataSource.query(
      `UPDATE oauth_grants SET payload = jsonb_set(payload, '{openid,scope}', to_jsonb($1::text))
       WHERE id = (SELECT grant_id FROM oauth_artifacts WHERE user_code = $2)`,
      [EVERY_SCOPE, codes.user_code.replace('-', '')],
    );
    expect((await poll(codes, await newDpopKey())).json.scope).toBe('openid svc:credentials');
  });

  it('leaves the scopes of a registered application', async () => {
    const codes = await newCodes({ client_id: television, scope: 'openid email profile' });
    await approve(ada, codes);
    const { json } = await poll(codes, undefined, { client_id: television });
    expect(json.scope).toBe('openid email profile');
  });

  it('is exchanged for nothing wider', async () => {
    const { token, dpop } = await deviceToken();
    const resource = 'https://cluster.device-sessions.example';
    const cluster = { name: 'Production', type: 'kubernetes', resource };
    await assigned(app, 'ada@device-sessions.example', 'device-sessions.example');
    expect((await ada.post('/api/v1/applications', cluster)).status).toBe(201);
    const exchanged = async (scope: string) => {
      const fields = {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        client_id: 'svc-cli',
        subject_token: token,
        subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        resource,
        scope,
      };
      const proof = await dpop.proof('POST', `${app.baseUrl}/oauth/token`);
      return postForm(app, '/oauth/token', fields, { dpop: proof });
    };
    for (const scope of ['svc:admin', 'svc:credentials', 'email', 'openid email']) {
      const { status, json } = await exchanged(scope);
      expect([scope, status, json.error]).toEqual([scope, 400, 'invalid_scope']);
    }
    const { json } = await exchanged('openid');
    expect(json).toMatchObject({ scope: 'openid', expires_in: 300 });
    const headers = { authorization: `Bearer ${String(json.access_token)}` };
    expect((await app.client().get('/v1/keys', { headers })).status).toBe(401);
  });
});

describe('the page that approves a device', () => {
  it('shows nothing that the requester chose, for svc-cli and for an application', async () => {
    const mark = 'YourHelpdeskAsksYou';
    for (const client_id of ['svc-cli', television]) {
      const fields = {
        client_id,
        scope: 'openid',
        state: mark,
        device_name: mark,
        client_name: mark,
      };
      const codes = await newCodes(fields, { 'user-agent': `${mark}/1.0 (${mark})` });
      const page = await show(ada, codes);
      expect(page.status).toBe(200);
      expect(page.text).not.toContain(mark);
      expect(page.text).toContain(codes.user_code);
      expect(page.text).toContain(client_id === 'svc-cli' ? 'svc command line' : 'Television');
    }
  });

  it('names the access that svc-cli gets, and not what it asked for', async () => {
    const page = await show(ada, await newCodes());
    expect(page.text).toContain('Get SSH certificates and other credentials in your name');
    for (const word of ['Administer', 'Manage the applications', 'e-mail address', 'See your name'])
      expect(page.text).not.toContain(word);
  });
});

describe('the session of a device', () => {
  /** Returns the routes that demand a recent touch. */
  const demanding = () =>
    app.nest
      .get(RoutePolicies)
      .routes.filter(({ policy }) => policy.auth.touchedWithinSeconds !== undefined);
  const pathOf = ({ template }: CompiledRoute) => template.replaceAll(/:\w+/g, ABSENT);

  it('meets the demand for a touch of no route, directly after its approval', async () => {
    const device = await deviceToken();
    const routes = demanding();
    expect(routes.length).toBeGreaterThan(20);
    const answers: string[] = [];
    for (const route of routes) {
      const { status, json } = await call(device, route.method, pathOf(route));
      const code = (json as { code?: string } | undefined)?.code ?? '';
      const isRefused = status === 403 || code === 'insufficient_user_authentication';
      if (!isRefused) answers.push(`${route.method} ${route.template} ${status} ${code}`);
    }
    expect(answers).toEqual([]);
    // the token works at a route that demands no touch
    expect((await call(device, 'GET', '/v1/keys')).status).toBe(200);
  });

  it('meets none with a token of every scope, of before the upgrade', async () => {
    const device = await deviceToken();
    const hash = [EVERY_SCOPE, Buffer.from(device.token)];
    await app.dataSource.query(
      `UPDATE oauth_artifacts SET payload = jsonb_set(payload, '{scope}', to_jsonb($1::text)) WHERE id = sha256($2)`,
      hash,
    );
    const statuses = async () => {
      const found = new Set<string>();
      for (const route of demanding()) {
        const { status, json } = await call(device, route.method, pathOf(route));
        found.add(`${status} ${(json as { code?: string } | undefined)?.code}`);
      }
      return [...found].toSorted();
    };
    expect(await statuses()).toEqual([
      '401 insufficient_user_authentication',
      '403 insufficient_scope',
    ]);
    // Without `gty` the token is not marked as one of a device. Its session still is one of a
    // device.
    await app.dataSource.query(
      `UPDATE oauth_artifacts SET payload = payload - 'gty' WHERE id = sha256($1)`,
      [Buffer.from(device.token)],
    );
    expect(await statuses()).toEqual(['401 insufficient_user_authentication']);
  });

  it('tells the client how to go on: log in in a browser', async () => {
    const device = await deviceToken();
    const answer = await call(device, 'DELETE', `/v1/keys/${ABSENT}`);
    expect(answer.headers.get('www-authenticate')).toContain('max_age="60"');
    expect(String(answer.json.detail)).toContain('browser');
  });
});

describe('an organization that switches the device grant off', () => {
  it('needs a touch for it, and the event has the old and the new value', async () => {
    expect((await ada.get('/api/v1/org')).json).toMatchObject({ device_grant: true });
    await app.dataSource.query(
      `UPDATE sessions SET auth_time = now() - interval '301 s' WHERE level = 'verified'`,
    );
    expect((await setting(false)).json.code).toBe('insufficient_user_authentication');
    await app.dataSource.query("UPDATE sessions SET auth_time = now() WHERE level = 'verified'");
    expect((await setting(false)).json).toMatchObject({ device_grant: false });
    const [event] = await rows(
      app.dataSource,
      `SELECT details FROM audit_events WHERE type = 'org_updated' ORDER BY id DESC LIMIT 1`,
    );
    expect(event).toEqual({ details: { device_grant: { from: true, to: false } } });
    expect((await ada.get('/admin/settings')).text).toContain('data-device-grant="false"');
  });

  it.each(['svc-cli', 'an application'])('refuses every approval and token: %s', async (name) => {
    const client_id = name === 'svc-cli' ? name : television;
    const fields = { client_id, scope: 'openid' };
    const [waiting, approved] = [await newCodes(fields), await newCodes(fields)];
    expect((await approve(ada, approved)).status).toBe(200);
    expect((await setting(false)).status).toBe(200);
    const refused = await approve(ada, waiting);
    expect([refused.status, refused.json.code]).toEqual([403, 'issuance_refused']);
    expect(String(refused.json.detail)).toContain('switched off');
    expect((await show(ada, waiting)).status).toBe(403);
    const answer = await poll(approved, undefined, { client_id });
    expect([answer.status, answer.json.error]).toEqual([400, 'access_denied']);
    expect(String(answer.json.error_description)).toContain('switched off');
    // The setting of this organization does not concern users of another one.
    expect((await approve(eve, await newCodes())).status).toBe(200);
  });

  it('ends the sessions of its devices at once', async () => {
    const device = await deviceToken();
    expect((await call(device, 'GET', '/v1/keys')).status).toBe(200);
    await setting(false);
    expect((await call(device, 'GET', '/v1/keys')).status).toBe(401);
    expect((await ada.get('/v1/keys')).status).toBe(200);
  });

  it('leaves no session of a device behind, with 20 approvals at the same moment', async () => {
    const codes = await Promise.all(Array.from({ length: 20 }, () => newCodes()));
    const [switched, ...approvals] = await Promise.all([
      setting(false),
      ...codes.map((one) => approve(ada, one)),
    ]);
    expect(switched.status).toBe(200);
    expect(approvals.filter(({ status }) => status !== 200 && status !== 403)).toEqual([]);
    const own = `sessions s JOIN users u ON u.id = s.user_id WHERE s.of_device AND u.email = $1`;
    expect(await count(app.dataSource, own, [ADA])).toBe(0);
    const answers = await Promise.all(codes.map((one) => poll(one)));
    expect(answers.filter(({ status }) => status === 200)).toEqual([]);
  });
});

describe('the upgrade', () => {
  it('marks and shortens the sessions of devices, ends their tokens for admins, and leaves logins by FIDO2', async () => {
    const [device, admin] = [await deviceToken(), await deviceToken()];
    const waiting = await newCodes();
    await approve(ada, waiting);
    const fido2 = await cliToken(app, adasKey, { scope: 'svc:credentials svc:admin' });
    const q = (text: string, values: unknown[] = []) => app.dataSource.query(text, values);
    await q(`UPDATE sessions SET of_device = false, expires_at = now() + interval '8 h'`);
    await q(
      `UPDATE oauth_artifacts SET payload = jsonb_set(payload, '{scope}', to_jsonb($1::text)) WHERE id = sha256($2)`,
      [EVERY_SCOPE, Buffer.from(admin.token)],
    );
    await repeatMigration(app.dataSource, '1763790040100-device-sessions-of-before');
    await repeatMigration(app.dataSource, '1763790040200-device-tokens-of-before');
    const [session] = await rows(
      app.dataSource,
      `SELECT count(*) FILTER (WHERE of_device)::int AS marked,
              bool_and(expires_at <= now() + interval '1 h') FILTER (WHERE of_device) AS short,
              count(*) FILTER (WHERE client_id = 'svc-cli' AND expires_at > now() + interval '7 h')::int AS whole
       FROM sessions WHERE created_at > now() - interval '10 s' AND client_id = 'svc-cli'`,
    );
    expect(session).toMatchObject({ short: true, whole: 1 });
    expect((await call(device, 'GET', '/v1/keys')).status).toBe(200);
    expect((await call(admin, 'GET', '/v1/keys')).status).toBe(401);
    expect((await call(fido2, 'GET', '/v1/keys')).status).toBe(200);
    expect((await poll(waiting, await newDpopKey())).json.scope).toBe('openid svc:credentials');
    expect((await call(device, 'DELETE', `/v1/keys/${ABSENT}`)).json.code).toBe(
      'insufficient_user_authentication',
    );
  });
});
