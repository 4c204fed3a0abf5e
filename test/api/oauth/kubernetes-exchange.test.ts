import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication, claimsOf } from '../../support/applications.js';
import { cliToken, type CliToken } from '../../support/cli-token.js';
import { FIDO2, fido2Answer } from '../../support/fido2-grant.js';
import { assigned } from '../../support/domains.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import {
  ath,
  authorize,
  newDpopKey,
  newPkce,
  parameterOf,
  postForm,
  type DpopKey,
} from '../../support/oauth-flow.js';
import { auditOf, count, rows } from '../../support/rows.js';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const CLUSTER = 'https://prod.k8s.kubernetes.example';
const API = '/api/v1/applications';

/**
 * The parts of a token exchange that differ from the usual one, by `svc-cli` for a cluster of its
 * organization.
 */
interface Different {
  readonly fields?: Readonly<Record<string, string>>;
  readonly without?: readonly string[];
  /** The key of the DPoP proof. With null no proof is sent. */
  readonly dpop?: DpopKey | null;
  /** Fields that are sent twice. */
  readonly again?: Readonly<Record<string, string>>;
}

let app: TestApp;
/**
 * Ada is the admin of an organization, and bob is a member of it. Eve is the admin of another
 * organization.
 */
let ada: Client;
let adasKey: SoftwareKey;
let bob: Client;
let eve: Client;
let evesKey: SoftwareKey;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada, key: adasKey } = await app.enrolled('ada@kubernetes.example'));
  ({ client: bob } = await app.enrolled('bob@kubernetes.example'));
  ({ client: eve, key: evesKey } = await app.enrolled('eve@outside.example'));
  await assigned(app, 'ada@kubernetes.example', 'kubernetes.example');
  await registered(ada, CLUSTER);
});
afterAll(() => app.close());

const api = (browser: Client, method: string, path = '', body?: unknown): Promise<Answer> =>
  browser.send(method, API + path, {
    address: newAddress(),
    ...(body === undefined ? {} : { body }),
  });

const register = (browser: Client, resource: string) =>
  api(browser, 'POST', '', { name: 'Production', type: 'kubernetes', resource });

/** Registers a Kubernetes cluster by its resource URL. Returns its client id. */
async function registered(browser: Client, resource: string): Promise<string> {
  const answer = await register(browser, resource);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return answer.json.client_id as string;
}

async function exchange({ token, dpop }: CliToken, different: Different = {}): Promise<Answer> {
  const key = different.dpop === undefined ? dpop : different.dpop;
  const fields = new URLSearchParams({
    grant_type: EXCHANGE,
    client_id: 'svc-cli',
    subject_token: token,
    subject_token_type: ACCESS_TOKEN,
    resource: CLUSTER,
    ...different.fields,
  });
  for (const name of different.without ?? []) fields.delete(name);
  for (const [name, value] of Object.entries(different.again ?? {})) fields.append(name, value);
  return app.client().send('POST', '/oauth/token', {
    address: newAddress(),
    body: fields.toString(),
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: '',
      ...(key === null ? {} : { dpop: await key.proof('POST', `${app.baseUrl}/oauth/token`) }),
    },
  });
}

const outcomeOf = ({ status, json }: Answer) => [status, json.error];
const tokensForClusters = () =>
  count(app.dataSource, 'oauth_artifacts WHERE application_id IS NOT NULL');
const isActive = async (token: string) =>
  (await postForm(app, '/oauth/introspect', { client_id: 'svc-cli', token })).json.active;

describe('applications of kind kubernetes', () => {
  it('an admin registers one, which has no secret, no redirect URI and no grant', async () => {
    const resource = 'https://staging.k8s.kubernetes.example';
    const answer = await register(ada, resource);
    expect([answer.status, answer.json]).toEqual([
      201,
      {
        client_id: expect.any(String) as string,
        name: 'Production',
        type: 'kubernetes',
        resource,
        owner_id: null,
        org_id: expect.any(String) as string,
        created_at: expect.any(String) as string,
        updated_at: expect.any(String) as string,
      },
    ]);
    const id = answer.json.client_id as string;
    expect((await api(ada, 'GET', `/${id}`)).json).toEqual(answer.json);
    const listed = (await api(ada, 'GET')).json.applications as { client_id: string }[];
    expect(listed.find(({ client_id: one }) => one === id)).toEqual(answer.json);
    const [audit] = await rows(
      app.dataSource,
      `SELECT type, details, org_id FROM audit_events WHERE details ->> 'client_id' = $1`,
      [id],
    );
    expect(audit).toMatchObject({
      type: 'oauth_client_registered',
      details: { name: 'Production', type: 'kubernetes', resource },
      org_id: answer.json.org_id as string,
    });
  });

  it('only an admin registers, sees, changes or deletes one', async () => {
    const refused = await register(bob, 'https://mine.k8s.kubernetes.example');
    expect([refused.status, refused.json.code]).toEqual([403, 'admin_required']);
    const id = await registered(ada, 'https://guarded.k8s.kubernetes.example');
    for (const other of [bob, eve]) {
      for (const [method, body] of [
        ['GET', undefined],
        ['PATCH', { name: 'Mine' }],
        ['DELETE', undefined],
      ] as const) {
        expect((await api(other, method, `/${id}`, body)).status).toBe(404);
      }
    }
    expect((await api(ada, 'GET', `/${id}`)).json.name).toBe('Production');
  });

  it('a token of svc-cli registers one with svc:admin alone', async () => {
    const [org] = await rows<{ id: string }>(
      app.dataSource,
      "SELECT org_id AS id FROM users WHERE email = 'ada@kubernetes.example'",
    );
    const resource = `urn:svc:${org?.id}:by-token`;
    const body = { name: 'By token', type: 'kubernetes', resource };
    for (const [scope, status] of [
      ['svc:applications', 403],
      ['svc:applications svc:admin', 201],
    ] as const) {
      const { token, dpop } = await cliToken(app, adasKey, { scope });
      const proof = await dpop.proof('POST', app.baseUrl + API, { ath: ath(token) });
      const headers = { authorization: `DPoP ${token}`, dpop: proof, origin: '' };
      const answer = await app.client().post(API, body, { headers });
      expect([scope, answer.status]).toEqual([scope, status]);
    }
  });

  it.each([
    ['no URI', 'prod'],
    ['a relative one', '/prod'],
    ['one with a fragment', 'https://prod.example/#a'],
    ['one with an empty fragment', 'https://prod.example/#'],
    ['one with user information', 'https://ada:x@prod.example'],
    ['one with a space', 'https://prod.example/a b'],
    ['one with a line break', 'https://prod.example/a\nb'],
    ['the empty one', ''],
    ['one that is too long', `https://prod.example/${'a'.repeat(2048)}`],
  ])('refuses as resource %s', async (_, resource) => {
    const answer = await register(ada, resource);
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });

  it('refuses as resource the service itself, in any spelling of its origin', async () => {
    for (const resource of [
      app.baseUrl,
      `${app.baseUrl}/v1`,
      app.baseUrl.replace('http', 'HTTP'),
    ]) {
      expect((await register(ada, resource)).status).toBe(400);
    }
  });

  it.each([
    ['a secret', { auth_method: 'client_secret_basic' }],
    ['a redirect URI', { redirect_uris: ['https://a.example/callback'] }],
    ['a grant', { grant_types: ['authorization_code'] }],
    ['scopes', { scopes: ['a'] }],
  ])('refuses one with %s', async (_, extra) => {
    const body = { name: 'x', type: 'kubernetes', resource: 'https://x.k8s.example', ...extra };
    expect((await api(ada, 'POST', '', body)).status).toBe(400);
  });

  it('a resource is registered once in an organization: one of 20 at once', async () => {
    const resource = 'https://once.k8s.kubernetes.example';
    const answers = await Promise.all(Array.from({ length: 20 }, () => register(ada, resource)));
    const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
    expect(statuses).toEqual([201, ...Array.from({ length: 19 }, () => 409)]);
    expect(answers.find(({ status }) => status === 409)?.json.code).toBe('uniqueness');
    // the host is in no domain of eve's organization
    expect((await register(eve, resource)).status).toBe(400);
  });

  it('its name can change, its resource and everything else cannot', async () => {
    const id = await registered(ada, 'https://renamed.k8s.kubernetes.example');
    const renamed = await api(ada, 'PATCH', `/${id}`, { name: 'Renamed' });
    expect([renamed.status, renamed.json]).toMatchObject([
      200,
      { name: 'Renamed', type: 'kubernetes', resource: 'https://renamed.k8s.kubernetes.example' },
    ]);
    for (const body of [
      { resource: 'https://other.example' },
      { grant_types: ['authorization_code'] },
      { auth_method: null },
    ]) {
      expect((await api(ada, 'PATCH', `/${id}`, body)).status).toBe(400);
    }
    expect((await api(ada, 'POST', `/${id}/secrets`)).status).toBe(400);
  });

  it('one outlives the admin who registered it, and is no OAuth client', async () => {
    const { client: admin } = await app.enrolled('admin@leaving.example');
    await assigned(app, 'admin@leaving.example', 'leaving.example');
    const id = await registered(admin, 'https://k8s.leaving.example');
    await app.dataSource.query("DELETE FROM users WHERE email = 'admin@leaving.example'");
    expect(await count(app.dataSource, 'oauth_clients WHERE id = $1', [id])).toBe(1);
    for (const path of ['/oauth/token', '/oauth/introspect', '/oauth/revoke']) {
      const fields = { client_id: id, grant_type: 'client_credentials', token: 'x' };
      expect((await postForm(app, path, fields)).json.error).toBe('invalid_client');
    }
  });
});

describe('the exchange of svc-cli for a cluster', () => {
  it('gives a JWT for 300 seconds that a verifier without introspection accepts', async () => {
    const answer = await exchange(await cliToken(app, adasKey));
    expect([answer.status, answer.json]).toEqual([
      200,
      {
        access_token: expect.any(String) as string,
        expires_in: 300,
        issued_token_type: ACCESS_TOKEN,
        token_type: 'Bearer',
      },
    ]);
    const jwt = answer.json.access_token as string;
    expect(decodeProtectedHeader(jwt)).toMatchObject({ alg: 'ES256', typ: 'at+jwt' });
    const jwks = createRemoteJWKSet(new URL(`${app.baseUrl}/oauth/jwks`));
    const expected = { issuer: app.baseUrl, audience: CLUSTER, algorithms: ['ES256'] };
    const { payload } = await jwtVerify(jwt, jwks, expected);
    expect(payload).toMatchObject({
      email: 'ada@kubernetes.example',
      client_id: 'svc-cli',
      hardware_verified: true,
      hardware_aaguid: expect.any(String) as string,
      auth_time: expect.any(Number) as number,
      amr: ['hwk', 'pin', 'user'],
      acr: 'urn:nist:authentication:assurance-level:aal3',
    });
    const [user] = await rows<{ id: string; org_id: string }>(
      app.dataSource,
      "SELECT id, org_id FROM users WHERE email = 'ada@kubernetes.example'",
    );
    expect(user).toMatchObject({ id: payload.sub, org_id: payload['org_id'] });
    const fields = { client_id: 'svc-cli', token: jwt };
    const { json } = await postForm(app, '/oauth/introspect', fields);
    expect(json).toMatchObject({ active: true, aud: CLUSTER, org_id: user?.org_id });
    expect(payload).not.toHaveProperty('cnf');
    expect(payload).not.toHaveProperty('scope');
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(300);
  });

  it('is audited with the cluster, and can be introspected', async () => {
    const { json } = await exchange(await cliToken(app, adasKey));
    const events = await auditOf(app.dataSource, 'ada@kubernetes.example');
    expect(events.findLast(({ type }) => type === 'token_exchange')?.details).toMatchObject({
      client_id: 'svc-cli',
      subject_client_id: 'svc-cli',
      audience: CLUSTER,
      application_id: expect.any(String) as string,
    });
    expect(await isActive(json.access_token as string)).toBe(true);
  });

  it('the JWT never outlives the session', async () => {
    const subject = await cliToken(app, adasKey);
    await app.dataSource.query(
      `UPDATE sessions SET expires_at = now() + interval '100 seconds'
       WHERE id = (SELECT g.session_id FROM oauth_grants g JOIN oauth_artifacts a ON a.grant_id = g.id
                   WHERE a.id = sha256($1::bytea))`,
      [Buffer.from(subject.token)],
    );
    const { status, json } = await exchange(subject);
    expect(status).toBe(200);
    expect(json.expires_in).toBeGreaterThan(60);
    expect(json.expires_in).toBeLessThanOrEqual(100);
  });

  it('one user’s 20 exchanges at once all succeed, each with its own JWT and audit row', async () => {
    const subject = await cliToken(app, adasKey);
    const answers = await Promise.all(Array.from({ length: 20 }, () => exchange(subject)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    const ids = answers.map(({ json }) => claimsOf(json.access_token as string)['jti']);
    expect(new Set(ids).size).toBe(20);
  });

  it('one DPoP proof is good for one of 20 exchanges at once', async () => {
    const { token, dpop } = await cliToken(app, adasKey);
    const proof = await dpop.proof('POST', `${app.baseUrl}/oauth/token`);
    const replayed = { thumbprint: dpop.thumbprint, proof: () => Promise.resolve(proof) };
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => exchange({ token, dpop: replayed })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  it.each<readonly [string, Different, string]>([
    [
      'a resource that is not registered',
      { fields: { resource: `${CLUSTER}/` } },
      'invalid_target',
    ],
    ['no resource', { without: ['resource'] }, 'invalid_target'],
    ['two resources', { again: { resource: 'https://b.k8s.example' } }, 'invalid_target'],
    ['the same resource twice', { again: { resource: CLUSTER } }, 'invalid_target'],
    ['an audience beside', { fields: { audience: CLUSTER } }, 'invalid_target'],
    [
      'an audience instead',
      { without: ['resource'], fields: { audience: CLUSTER } },
      'invalid_target',
    ],
    ['our own APIs', { fields: { scope: 'svc:credentials' } }, 'invalid_scope'],
    ['a scope of the cluster’s own', { fields: { scope: 'cluster:admin' } }, 'invalid_scope'],
    ['no proof', { dpop: null }, 'invalid_dpop_proof'],
    [
      'an ID token',
      { fields: { subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' } },
      'invalid_request',
    ],
    [
      'an actor',
      { fields: { actor_token: 'x', actor_token_type: ACCESS_TOKEN } },
      'invalid_request',
    ],
    [
      'a refresh token',
      { fields: { requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' } },
      'invalid_request',
    ],
  ])('refuses %s, and issues nothing', async (_, different, error) => {
    const subject = await cliToken(app, adasKey);
    const before = await tokensForClusters();
    expect(outcomeOf(await exchange(subject, different))).toEqual([400, error]);
    expect(await tokensForClusters()).toBe(before);
  });

  it('refuses a stolen token: with a proof of another key, and without a key at all', async () => {
    const { token } = await cliToken(app, adasKey);
    const stolen = await exchange({ token, dpop: await newDpopKey() });
    expect(outcomeOf(stolen)).toEqual([400, 'invalid_request']);
    const unbound = await cliToken(app, adasKey, { bound: false });
    expect(outcomeOf(await exchange(unbound))).toEqual([400, 'invalid_request']);
  });

  it('refuses a token of svc-cli that is not for credentials', async () => {
    const subject = await cliToken(app, adasKey, { scope: 'openid svc:applications' });
    expect(outcomeOf(await exchange(subject))).toEqual([400, 'invalid_request']);
  });

  it('refuses the JWT of a cluster, and the cookie of a browser, as subject token', async () => {
    const { dpop, token } = await cliToken(app, adasKey);
    const { json } = await exchange({ token, dpop });
    for (const subject of [json.access_token as string, ada.cookie('svc_session') ?? '']) {
      const answer = await exchange({ token: subject, dpop });
      expect(outcomeOf(answer)).toEqual([400, 'invalid_request']);
    }
  });

  it('knows no cluster of another organization, and each organization its own of one name', async () => {
    const foreign = await exchange(await cliToken(app, evesKey));
    const unknown = await exchange(await cliToken(app, evesKey), {
      fields: { resource: 'https://nowhere.example' },
    });
    expect(outcomeOf(foreign)).toEqual([400, 'invalid_target']);
    expect(foreign.json.error_description).toBe(unknown.json.error_description);
  });

  it('is for svc-cli alone of public clients: no application and no client that registered itself', async () => {
    const subject = await cliToken(app, adasKey);
    const metadata = {
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      redirect_uris: [],
      response_types: [],
      grant_types: [EXCHANGE],
    };
    const own = await addApplication(app, metadata, { owner: 'ada@kubernetes.example' });
    const dynamic = await addApplication(app, metadata, { kind: 'dynamic' });
    for (const { clientId } of [own, dynamic]) {
      const answer = await exchange(subject, { fields: { client_id: clientId } });
      expect(outcomeOf(answer)).toEqual([400, 'unauthorized_client']);
    }
  });

  it('a confidential application exchanges no token of svc-cli, and no JWT of a cluster', async () => {
    const subject = await cliToken(app, adasKey);
    const { json } = await exchange(subject);
    const { clientId, clientSecret } = await addApplication(
      app,
      {
        token_endpoint_auth_method: 'client_secret_post',
        redirect_uris: [],
        response_types: [],
        grant_types: [EXCHANGE],
      },
      { owner: 'ada@kubernetes.example' },
    );
    const as = { client_id: clientId, client_secret: clientSecret };
    for (const token of [subject.token, json.access_token as string]) {
      const answer = await exchange({ token, dpop: subject.dpop }, { fields: as });
      expect(outcomeOf(answer)).toEqual([400, 'invalid_request']);
    }
  });

  it('no other grant gives a JWT for a cluster: neither a code of an application, nor the FIDO2 grant', async () => {
    const metadata = {
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      redirect_uris: ['http://127.0.0.1/callback'],
      response_types: ['code'],
      grant_types: ['authorization_code', FIDO2],
      svc_resource_scopes: 'pods:read',
    };
    const { clientId } = await addApplication(app, metadata, { owner: 'ada@kubernetes.example' });
    for (const [resource, outcome] of [
      [CLUSTER, [400, 'invalid_target']],
      ['https://orders.example', [200, undefined]],
    ] as const) {
      const { verifier, challenge } = newPkce();
      const url = await authorize(ada, {
        client_id: clientId,
        response_type: 'code',
        redirect_uri: 'http://127.0.0.1/callback',
        scope: 'pods:read',
        code_challenge: challenge,
        code_challenge_method: 'S256',
        resource,
      });
      if (resource === CLUSTER) {
        expect(parameterOf(url, 'error')).toBe('invalid_target');
      } else {
        const redeemed = await postForm(app, '/oauth/token', {
          client_id: clientId,
          grant_type: 'authorization_code',
          code: parameterOf(url, 'code'),
          code_verifier: verifier,
          redirect_uri: 'http://127.0.0.1/callback',
          resource,
        });
        expect([resource, outcomeOf(redeemed)]).toEqual([resource, outcome]);
      }
      const touched = await fido2Answer(app, adasKey, { clientId, resource, scope: 'pods:read' });
      expect([resource, outcomeOf(touched)]).toEqual([resource, outcome]);
    }
  });

  it('client credentials give no JWT for a cluster of the organization of the application', async () => {
    const { clientId, clientSecret } = await addApplication(
      app,
      {
        token_endpoint_auth_method: 'client_secret_post',
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
      },
      { owner: 'bob@kubernetes.example' },
    );
    const outcomeFor = async (resource: string) =>
      outcomeOf(
        await postForm(app, '/oauth/token', {
          client_id: clientId,
          client_secret: clientSecret,
          grant_type: 'client_credentials',
          resource,
        }),
      );
    expect(await outcomeFor(CLUSTER)).toEqual([400, 'invalid_target']);
    expect(await outcomeFor('https://orders.example')).toEqual([200, undefined]);
  });

  it('refuses a deactivated user, a session of certification test mode, and one that has ended', async () => {
    const { key } = await app.enrolled('cleo@kubernetes.example');
    const user = "(SELECT id FROM users WHERE email = 'cleo@kubernetes.example')";
    const subject = await cliToken(app, key);
    for (const [change, undo] of [
      [
        `UPDATE users SET active = false WHERE id = ${user}`,
        `UPDATE users SET active = true WHERE id = ${user}`,
      ],
      [
        `UPDATE sessions SET level = 'synthetic', authenticator_id = NULL WHERE user_id = ${user} AND client_id = 'svc-cli'`,
        `UPDATE sessions SET level = 'verified', authenticator_id = (SELECT id FROM authenticators WHERE user_id = ${user})
         WHERE user_id = ${user} AND client_id = 'svc-cli'`,
      ],
    ] as const) {
      await app.dataSource.query(change);
      expect(outcomeOf(await exchange(subject))).toEqual([400, 'invalid_request']);
      await app.dataSource.query(undo);
      expect((await exchange(subject)).status).toBe(200);
    }
    await app.dataSource.query(`DELETE FROM sessions WHERE user_id = ${user}`);
    expect(outcomeOf(await exchange(subject))).toEqual([400, 'invalid_request']);
  });

  it('a user who is removed while the exchange waits gets nothing', async () => {
    const { key } = await app.enrolled('dora@kubernetes.example');
    const subject = await cliToken(app, key);
    const before = await tokensForClusters();
    const exchanged = await app.dataSource.transaction(async (tx) => {
      await tx.query("SELECT id FROM users WHERE email = 'dora@kubernetes.example' FOR UPDATE");
      const waiting = exchange(subject);
      await untilWaiting(app.dataSource, 1);
      await tx.query("DELETE FROM users WHERE email = 'dora@kubernetes.example'");
      return { waiting };
    });
    expect((await exchanged.waiting).status).toBe(400);
    expect(await tokensForClusters()).toBe(before);
  });

  it('a deletion of the application ends the exchange and the JWTs, also while an exchange waits', async () => {
    const resource = 'https://short.k8s.kubernetes.example';
    const id = await registered(ada, resource);
    const subject = await cliToken(app, adasKey);
    const { json } = await exchange(subject, { fields: { resource } });
    expect(await isActive(json.access_token as string)).toBe(true);
    const exchanged = await app.dataSource.transaction(async (tx) => {
      await tx.query('SELECT id FROM oauth_clients WHERE id = $1 FOR UPDATE', [id]);
      const waiting = exchange(subject, { fields: { resource } });
      await untilWaiting(app.dataSource, 1);
      await tx.query('DELETE FROM oauth_clients WHERE id = $1', [id]);
      return { waiting };
    });
    expect((await exchanged.waiting).status).toBe(400);
    expect(await isActive(json.access_token as string)).toBe(false);
    const again = await registered(ada, resource);
    expect((await api(ada, 'DELETE', `/${again}`)).status).toBe(204);
    const answer = await exchange(subject, { fields: { resource } });
    expect(outcomeOf(answer)).toEqual([400, 'invalid_target']);
  });

  it('POST revoke-tokens of the application ends its JWTs, and no others', async () => {
    const resource = 'https://revoked.k8s.kubernetes.example';
    const id = await registered(ada, resource);
    const subject = await cliToken(app, adasKey);
    const { json } = await exchange(subject, { fields: { resource } });
    const { json: other } = await exchange(subject);
    const revoked = await api(ada, 'POST', `/${id}/revoke-tokens`);
    expect(revoked.json).toEqual({ revoked: 1 });
    expect(await isActive(json.access_token as string)).toBe(false);
    expect(await isActive(other.access_token as string)).toBe(true);
  });

  it('a removal of the user by SCIM or an admin makes the JWT inactive at once', async () => {
    const { key } = await app.enrolled('finn@kubernetes.example');
    const { json } = await exchange(await cliToken(app, key));
    expect(await isActive(json.access_token as string)).toBe(true);
    const [member] = await rows<{ id: string }>(
      app.dataSource,
      "SELECT id FROM users WHERE email = 'finn@kubernetes.example'",
    );
    const path = `/api/v1/org/members/${member?.id}/remove`;
    const { status } = await ada.send('POST', path, { address: newAddress() });
    expect(status).toBeLessThan(300);
    expect(await isActive(json.access_token as string)).toBe(false);
  });

  it('the JWT opens nothing at this service, under either scheme or as a cookie', async () => {
    const { token, dpop } = await cliToken(app, adasKey, { scope: 'openid svc:credentials' });
    const { json } = await exchange({ token, dpop });
    const jwt = json.access_token as string;
    for (const path of [
      '/v1/keys',
      '/v1/sessions',
      API,
      '/api/v1/org/members',
      '/oauth/userinfo',
      '/scim/v2/Users',
    ]) {
      const proof = await dpop.proof('GET', app.baseUrl + path, { ath: ath(jwt) });
      for (const headers of [
        { authorization: `Bearer ${jwt}` },
        { authorization: `DPoP ${jwt}`, dpop: proof },
      ]) {
        const { status } = await app.client().get(path, { headers });
        expect([path, status]).toEqual([path, 401]);
      }
    }
    const browser = app.client();
    browser.setCookie('svc_session', jwt);
    expect((await browser.get('/v1/keys')).status).toBe(401);
  });
});
