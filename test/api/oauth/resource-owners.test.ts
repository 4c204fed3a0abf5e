import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DomainOwnership } from '../../../src/domain/organizations/domains/domain-ownership.service.js';
import { ProvidersModule } from '../../../src/domain/providers/providers.module.js';
import { operatorDomains } from '../../../src/domain/admin/operator-access/compose-access.js';
import { accessApi, putRule } from '../../support/access-api.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { addApplication, claimsOf } from '../../support/applications.js';
import { fido2Answer } from '../../support/fido2-grant.js';
import { newAddress, type Client } from '../../support/client.js';
import { assigned } from '../../support/domains.js';
import {
  CALLBACK,
  authorize,
  newCodeFields,
  newPkce,
  parameterOf,
  postForm,
} from '../../support/oauth-flow.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { idOf } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';

const CLUSTER = 'https://prod.owner.example';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
/** The registered resource and other spellings of the same URI. */
const SPELLINGS = [
  CLUSTER,
  `${CLUSTER}/`,
  'https://PROD.owner.example:443/',
  'https://prod.owner.example./',
];

describe('a resource that an organization registered', () => {
  let app: TestApp;
  let ada: EnrolledUser;
  let eve: EnrolledUser;
  let orgs: Readonly<Record<'owner' | 'other', string>>;
  beforeAll(async () => {
    app = await startTestApp();
    ada = await app.enrolled('ada@owner.example');
    eve = await app.enrolled('eve@other.example');
    orgs = { owner: await orgOf('ada@owner.example'), other: await orgOf('eve@other.example') };
    await assigned(app, 'ada@owner.example', 'owner.example');
    const made = await register(ada.client, CLUSTER);
    if (made.status !== 201) throw new Error(made.text);
  });
  afterAll(() => app.close());

  async function orgOf(email: string): Promise<string> {
    const query = 'SELECT org_id AS id FROM users WHERE email = $1';
    const [org] = await rows<{ id: string }>(app.dataSource, query, [email]);
    return org?.id ?? '';
  }

  const register = (browser: Client, resource: string) =>
    browser.post(
      '/api/v1/applications',
      { name: 'Production', type: 'kubernetes', resource },
      { address: newAddress() },
    );

  /** Inserts a cluster as an earlier version registered it, without a proof of its domain. */
  const inserted = (orgId: string, resource: string) =>
    rows(
      app.dataSource,
      `INSERT INTO oauth_clients (id, kind, metadata, org_id, resource)
       VALUES (gen_random_uuid()::text, 'kubernetes', '{"client_name": "Old"}', $1, $2) RETURNING id`,
      [orgId, resource],
    ) as Promise<{ id: string }[]>;

  const clustersOf = async (orgId: string) => {
    const query = `SELECT resource FROM oauth_clients WHERE kind = 'kubernetes' AND org_id = $1 ORDER BY resource`;
    const found = await rows<{ resource: string }>(app.dataSource, query, [orgId]);
    return found.map(({ resource }) => resource);
  };

  const basic = (id: string, secret: string) => ({
    authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
  });

  it.each(SPELLINGS)(
    'is refused to the clients and people of another organization on every grant: %s',
    async (resource) => {
      const refused: Record<string, unknown> = {};
      const made = (metadata: object) =>
        addApplication(app, metadata as never, { owner: 'eve@other.example' });
      const web = await made({
        redirect_uris: [CALLBACK],
        token_endpoint_auth_method: 'client_secret_basic',
      });
      const service = await made({
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
        token_endpoint_auth_method: 'client_secret_basic',
        svc_resource_scopes: 'a',
      });
      const native = await made({
        application_type: 'native',
        grant_types: [
          'urn:ietf:params:oauth:grant-type:device_code',
          'urn:svc:params:oauth:grant-type:fido2',
        ],
        response_types: [],
        redirect_uris: [],
        token_endpoint_auth_method: 'none',
      });
      const request = {
        client_id: web.clientId,
        response_type: 'code',
        redirect_uri: CALLBACK,
        scope: 'openid',
        resource,
        code_challenge: newPkce().challenge,
        code_challenge_method: 'S256',
      };
      const sent = await authorize(eve.client, request);
      refused['code'] = sent.searchParams.get('error');
      const keys = basic(web.clientId, web.clientSecret);
      refused['par'] = (await postForm(app, '/oauth/par', request, keys)).json.error;
      const plain = await newCodeFields(eve.client, web.clientId);
      refused['token'] = (
        await postForm(app, '/oauth/token', { ...plain, resource }, keys)
      ).json.error;
      const own = { grant_type: 'client_credentials', scope: 'a', resource };
      const ofService = basic(service.clientId, service.clientSecret);
      refused['client_credentials'] = (
        await postForm(app, '/oauth/token', own, ofService)
      ).json.error;
      const device = { client_id: native.clientId, scope: 'openid', resource };
      refused['device'] = (await postForm(app, '/oauth/device', device)).json.error;
      const touched = await fido2Answer(app, eve.key, {
        clientId: native.clientId,
        scope: 'openid',
        resource,
      });
      refused['fido2'] = touched.json.error;
      expect(refused).toEqual({
        code: 'invalid_target',
        par: 'invalid_target',
        token: 'invalid_target',
        client_credentials: 'invalid_target',
        device: 'invalid_target',
        fido2: 'invalid_target',
      });
      const given = await rows(
        app.dataSource,
        "SELECT id FROM oauth_artifacts WHERE payload ->> 'aud' ILIKE '%prod.owner.example%'",
      );
      expect(given).toEqual([]);
    },
  );

  it.each([
    'https://old-lab.example:0443/',
    'https://old-lab.example/a/../b',
    'https://old-lab.example?',
    'https:///old-lab.example/x',
  ])(
    'is refused in exactly the spelling in which an earlier version registered it: %s',
    async (resource) => {
      await inserted(orgs.owner, resource);
      const { clientId, clientSecret } = await addApplication(
        app,
        {
          grant_types: ['client_credentials'],
          response_types: [],
          redirect_uris: [],
          token_endpoint_auth_method: 'client_secret_basic',
          svc_resource_scopes: 'a',
        },
        { owner: 'eve@other.example' },
      );
      const fields = { grant_type: 'client_credentials', scope: 'a', resource };
      const keys = basic(clientId, clientSecret);
      const answer = await postForm(app, '/oauth/token', fields, keys);
      expect([answer.status, answer.json.error]).toEqual([400, 'invalid_target']);
    },
  );

  it('is refused to the token exchange of another organization from its registration on', async () => {
    const web = await addApplication(
      app,
      {
        redirect_uris: [CALLBACK],
        grant_types: ['authorization_code', EXCHANGE],
        token_endpoint_auth_method: 'client_secret_basic',
        svc_resource_scopes: 'a',
      },
      { owner: 'eve@other.example' },
    );
    const keys = basic(web.clientId, web.clientSecret);
    const { verifier, challenge } = newPkce();
    const resource = 'https://late.owner.example/';
    const sent = await authorize(eve.client, {
      client_id: web.clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid a',
      resource,
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    const code = { code: parameterOf(sent, 'code'), code_verifier: verifier };
    const subject = await postForm(
      app,
      '/oauth/token',
      { grant_type: 'authorization_code', redirect_uri: CALLBACK, ...code },
      keys,
    );
    const exchange = async () => {
      const fields = {
        grant_type: EXCHANGE,
        subject_token: subject.json.access_token as string,
        subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        resource,
      };
      const { json } = await postForm(app, '/oauth/token', fields, keys);
      return json.error ?? claimsOf(json.access_token as string)['org_id'];
    };
    expect(await exchange()).toBe(orgs.other);
    expect((await register(ada.client, 'https://late.owner.example')).status).toBe(201);
    expect(await exchange()).toBe('invalid_target');
  });

  it('is not refused where it only begins alike', async () => {
    const service = await addApplication(
      app,
      {
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
        token_endpoint_auth_method: 'client_secret_basic',
        svc_resource_scopes: 'a',
      },
      { owner: 'eve@other.example' },
    );
    const fields = { grant_type: 'client_credentials', scope: 'a', resource: `${CLUSTER}/api` };
    const { json } = await postForm(
      app,
      '/oauth/token',
      fields,
      basic(service.clientId, service.clientSecret),
    );
    expect(claimsOf(json.access_token as string)).toMatchObject({ org_id: orgs.other });
  });

  it.each([
    ['in a domain that the organization only asserted', 'https://k8s.other.example', 400],
    ['in the domain of another organization', 'https://new.owner.example', 400],
    ['with the end of a domain of its own', 'https://notproven-lab.example', 400],
    ['as a urn: of another organization', 'owner', 400],
    ['as a urn: of its own', 'other', 201],
    ['in a proven domain', 'https://proven-lab.example', 201],
    [
      'in a subdomain of a proven domain, with a port',
      'https://a.b.proven-lab.example:6443/x',
      201,
    ],
  ])('is registered %s, or not: %s', async (_, resource, status) => {
    await assigned(app, 'eve@other.example', 'proven-lab.example');
    const name = resource in orgs ? `urn:svc:${orgs[resource as 'owner']}:prod` : resource;
    const answer = await register(eve.client, name);
    expect([answer.status, answer.text]).toEqual([status, expect.any(String)]);
  });

  it('ends with a domain that the operator releases', async () => {
    await assigned(app, 'eve@other.example', 'released-lab.example');
    const resource = 'https://k8s.released-lab.example';
    expect((await register(eve.client, resource)).status).toBe(201);
    const operator = {
      name: 'olga',
      uid: 7,
      loginUid: undefined,
      claimedUser: undefined,
      host: 'h',
    };
    const act = { domain: 'released-lab.example', orgId: null, operator } as const;
    await operatorDomains(app.dataSource).perform({ ...act, kind: 'release' });
    expect(await clustersOf(orgs.other)).not.toContain(resource);
  });

  it('ends once the settings name the primary domain no more that it stands on', async () => {
    await rows(
      app.dataSource,
      `UPDATE organization_domains SET is_vouched = true WHERE domain = 'other.example'`,
    );
    const resource = 'https://k8s.other.example';
    expect((await register(eve.client, resource)).status).toBe(201);
    const kept = `urn:svc:${orgs.other}:kept`;
    expect((await register(eve.client, kept)).status).toBe(201);
    await app.nest.get(ProvidersModule, { strict: false }).onApplicationBootstrap();
    expect(await clustersOf(orgs.other)).not.toContain(resource);
    expect(await clustersOf(orgs.other)).toContain(kept);
    expect((await eve.client.get('/v1/keys', { address: newAddress() })).status).toBe(200);
    const [event] = await rows<{ details: object }>(
      app.dataSource,
      `SELECT details FROM audit_events WHERE type = 'oauth_client_deleted' AND details ->> 'resource' = $1`,
      [resource],
    );
    expect(event?.details).toMatchObject({ reason: 'domain no longer named' });
  });

  it('ends with a lost domain, in its transaction, and others stay', async () => {
    await assigned(app, 'eve@other.example', 'lost-lab.example');
    expect((await register(eve.client, 'https://k8s.lost-lab.example')).status).toBe(201);
    const before = await clustersOf(orgs.other);
    const ended = await eve.client.send('DELETE', '/api/v1/org/domains/lost-lab.example', {
      address: newAddress(),
    });
    expect(ended.status).toBeLessThan(300);
    expect(await clustersOf(orgs.other)).toEqual(
      before.filter((resource) => resource !== 'https://k8s.lost-lab.example'),
    );
    const [event] = await rows<{ details: object }>(
      app.dataSource,
      "SELECT details FROM audit_events WHERE type = 'oauth_client_deleted' AND details ->> 'resource' = 'https://k8s.lost-lab.example'",
    );
    expect(event?.details).toMatchObject({ type: 'kubernetes', reason: 'domain removed' });
  });

  it.each(['lost with its domain', 'removed'])(
    'keeps its rule without the assignments, if it was %s and is registered again',
    async (how) => {
      const domain = `${how.split(' ', 1)[0]}-again.example`;
      const resource = `https://k8s.${domain}`;
      const { client } = eve;
      await assigned(app, 'eve@other.example', domain);
      const rule = {
        access: 'assigned',
        conditions: { touch_within_seconds: 900 },
        assignments: [{ user: await idOf(app, 'eve@other.example') }],
      } as const;
      const first = (await register(client, resource)).json.client_id as string;
      expect((await putRule(client, `/application/${first}`, rule)).status).toBe(200);
      const to = { address: newAddress() };
      if (how === 'removed') await client.send('DELETE', `/api/v1/applications/${first}`, to);
      else await client.send('DELETE', `/api/v1/org/domains/${domain}`, to);
      expect(await clustersOf(orgs.other)).not.toContain(resource);
      await assigned(app, 'eve@other.example', domain);
      const again = (await register(client, resource)).json.client_id as string;
      expect(again).not.toBe(first);
      const { json } = await accessApi(client, 'GET', `/application/${again}`);
      expect(json).toMatchObject({ ...rule, assignments: [] });
      const other = (await register(client, `${resource}/other`)).json.client_id as string;
      const ofOther = await accessApi(client, 'GET', `/application/${other}`);
      expect(ofOther.json).toMatchObject({ access: 'everyone', conditions: {} });
    },
  );

  it.each(['lost with its domain', 'removed'])(
    'keeps the rule with which an admin closes it while it is %s',
    async (how) => {
      const domain = `${how.split(' ', 1)[0]}-closed.example`;
      const resource = `https://k8s.${domain}`;
      const { client } = eve;
      await assigned(app, 'eve@other.example', domain);
      const first = (await register(client, resource)).json.client_id as string;
      const closing = app.dataSource.createQueryRunner();
      await closing.startTransaction();
      const closed = `UPDATE access_targets SET access = 'assigned' WHERE client_id = $1`;
      await closing.query(closed, [first]);
      const path = how === 'removed' ? `applications/${first}` : `org/domains/${domain}`;
      const end = client.send('DELETE', `/api/v1/${path}`, { address: newAddress() });
      await untilWaiting(app.dataSource, 1);
      await closing.commitTransaction();
      await closing.release();
      await end;
      expect(await clustersOf(orgs.other)).not.toContain(resource);
      await assigned(app, 'eve@other.example', domain);
      const again = (await register(client, resource)).json.client_id as string;
      const { json } = await accessApi(client, 'GET', `/application/${again}`);
      expect(json).toMatchObject({ access: 'assigned', assignments: [] });
    },
  );

  it('of two organizations stays with each until one proves the domain, which ends the other’s', async () => {
    const double = 'https://k8s.double.example';
    await inserted(orgs.owner, double);
    const [old] = await inserted(orgs.other, double);
    const shown = await eve.client.get(`/admin/applications/${old?.id}`, { address: newAddress() });
    expect(shown.text).toContain('data-unproven');
    expect(await clustersOf(orgs.other)).toContain(double);
    const ownership = app.nest.get(DomainOwnership, { strict: false });
    const operator = {
      origin: { requestId: 'test', ip: undefined, userAgent: undefined },
      details: {},
    };
    const own = { orgId: orgs.owner, domain: 'double.example' };
    await app.dataSource.transaction((tx) => ownership.assign(tx, own, operator));
    expect(await clustersOf(orgs.owner)).toContain(double);
    expect(await clustersOf(orgs.other)).not.toContain(double);
  });
});
