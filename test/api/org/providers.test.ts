import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { changed, startFakeIdp, type FakeIdp } from '../../support/fake-idp.js';
import { touchedAgo } from '../../support/keys.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { count } from '../../support/rows.js';
import {
  allow,
  enrolledThrough,
  eventsOf,
  founded,
  providersOf,
  withdraw,
} from '../../support/two-providers.js';

const TENANT = '72f988bf-86f1-41af-91ab-2d7cd011db47';
const OTHER_TENANT = '0ca7c2a6-0d6c-4d26-9a0a-5b0f1a3c9e01';

describe('the identity providers of an organization', () => {
  let app: TestApp;
  let entra: FakeIdp;
  beforeAll(async () => {
    entra = await startFakeIdp({ path: '/organizations/v2.0' });
    entra.misbehaviour.document = changed({ issuer: `${entra.origin}/{tenantid}/v2.0` });
    app = await startTestApp({
      furtherProviders: ['other'],
      environment: {
        SVC_IDP_ENTRA_TYPE: 'oidc',
        SVC_IDP_ENTRA_ISSUER: entra.issuer,
        SVC_IDP_ENTRA_CLIENT_ID: entra.clientId,
        SVC_IDP_ENTRA_CLIENT_SECRET: entra.clientSecret,
        SVC_IDPS: 'demo,other,entra',
      },
    });
  });
  afterAll(async () => {
    await app.close();
    await entra.close();
  });

  it('are the one of its founder at first, beside those that an admin can allow', async () => {
    const { founder } = await founded(app);
    const { json } = await orgApi(founder.client, 'GET', '/providers');
    expect(json.providers).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        provider: 'demo',
        name: 'the demo provider',
        issuer: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
        tenant: '',
        founding: true,
        added_by: null,
        created_at: expect.stringMatching(/Z$/),
        users: 1,
      },
    ]);
    expect(json.available).toEqual([
      expect.objectContaining({ provider: 'demo', tenant_required: false }),
      expect.objectContaining({ provider: 'other', tenant_required: false }),
      expect.objectContaining({
        provider: 'entra',
        issuer: entra.issuer,
        tenant_required: true,
      }),
    ]);
  });

  it('refuse a member until an admin allows the provider', async () => {
    const { founder, address, domain } = await founded(app);
    const bob = app.client();
    expect((await bob.signIn(address('bob'), '/', 'other')).status).toBe(403);
    const answer = await allow(founder.client, 'other');
    const admin = await idOf(app, address('ada'));
    expect(answer.status).toBe(201);
    expect(answer.json).toMatchObject({
      provider: 'other',
      tenant: '',
      founding: false,
      added_by: admin,
      users: 0,
    });
    await enrolledThrough(app, address('bob'), 'other');
    const listed = await providersOf(founder.client);
    expect(listed.map(({ provider, users }) => [provider, users])).toEqual([
      ['demo', 1],
      ['other', 1],
    ]);
    expect(await eventsOf(app, domain, 'org_provider_allowed')).toEqual([
      {
        actor: address('ada'),
        subject: null,
        details: {
          provider_id: answer.json.id,
          provider: 'other',
          issuer: answer.json.issuer,
          tenant: '',
        },
      },
    ]);
  });

  it('are allowed once by 20 requests at once', async () => {
    const { founder, domain } = await founded(app);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => allow(founder.client, 'other')),
    );
    const refused = answers.filter(({ status }) => status !== 201);
    expect(refused).toHaveLength(19);
    expect(new Set(refused.map(({ json }) => json.code))).toEqual(new Set(['already_allowed']));
    expect(await eventsOf(app, domain, 'org_provider_allowed')).toHaveLength(1);
  });

  it.each([
    ['a slug that is not configured', { provider: 'nobody' }, 404, 'unknown_provider'],
    ['no slug', {}, 400, 'invalid_request'],
    ['an unknown member', { provider: 'other', issuer: 'x' }, 400, 'invalid_request'],
    ['a needless tenant', { provider: 'other', tenant: TENANT }, 400, 'invalid_request'],
    ['no tenant where many are served', { provider: 'entra' }, 400, 'invalid_request'],
    ['a tenant that is no UUID', { provider: 'entra', tenant: 'acme' }, 400, 'invalid_request'],
  ])('are not allowed with %s', async (_what, body, status, code) => {
    const { founder, domain } = await founded(app);
    const answer = await orgApi(founder.client, 'POST', '/providers', body);
    expect([answer.status, answer.json.code]).toEqual([status, code]);
    expect(await providersOf(founder.client)).toHaveLength(1);
    expect(await eventsOf(app, domain, 'org_provider_allowed')).toEqual([]);
  });

  it('change by an admin with a recent touch alone', async () => {
    const { founder, address } = await founded(app);
    const { client: member } = await app.enrolled(address('bob'));
    expect((await orgApi(member, 'GET', '/providers')).status).toBe(403);
    expect((await allow(member, 'other')).json.code).toBe('admin_required');
    await allow(founder.client, 'other');
    await touchedAgo(app, address('ada'), 301);
    expect((await allow(founder.client, 'entra', TENANT)).json.code).toBe(
      'insufficient_user_authentication',
    );
    expect((await withdraw(founder.client, 'other')).json.code).toBe(
      'insufficient_user_authentication',
    );
    expect(await providersOf(founder.client)).toHaveLength(2);
  });

  it('of another organization do not exist', async () => {
    const { founder: stranger } = await founded(app);
    const { founder } = await founded(app);
    await allow(founder.client, 'other');
    await allow(stranger.client, 'other');
    const [, theirs] = await providersOf(founder.client);
    for (const id of [theirs?.id, randomUUID(), 'not-a-uuid']) {
      const answer = await orgApi(stranger.client, 'DELETE', `/providers/${id}`);
      expect([answer.status, answer.json.code]).toEqual([404, 'not_found']);
    }
    expect(await providersOf(founder.client)).toHaveLength(2);
  });

  it('accept one tenant of a provider that serves many, until it is withdrawn', async () => {
    const { founder, address } = await founded(app);
    const signInAs = async (name: string, tid: string) => {
      const iss = `${entra.origin}/${tid}/v2.0`;
      const email = address(name);
      const claims = { iss, tid, sub: `${name} of ${tid}`, email, xms_edov: true };
      entra.misbehaviour.claims = changed({ ...claims, email_verified: undefined });
      return app.client().signIn(email, '/', 'entra');
    };
    expect((await allow(founder.client, 'entra', TENANT.toUpperCase())).json).toMatchObject({
      provider: 'entra',
      issuer: `${entra.origin}/${TENANT}/v2.0`,
      tenant: TENANT,
    });
    expect((await signInAs('bob', OTHER_TENANT)).status).toBe(403);
    expect((await signInAs('bob', TENANT)).status).toBe(200);
    expect((await allow(founder.client, 'entra', TENANT)).status).toBe(409);
    expect((await allow(founder.client, 'entra', OTHER_TENANT)).status).toBe(201);
    expect((await signInAs('eve', OTHER_TENANT)).status).toBe(200);
    const first = (await providersOf(founder.client)).find(({ tenant }) => tenant === TENANT);
    expect((await orgApi(founder.client, 'DELETE', `/providers/${first?.id}`)).status).toBe(200);
    expect((await signInAs('bob', TENANT)).status).toBe(403);
    expect((await signInAs('eve', OTHER_TENANT)).status).toBe(200);
  });

  it('a member adds an own identity of a second provider with the security key, and not without', async () => {
    const { founder, address, domain } = await founded(app);
    await allow(founder.client, 'other');
    const { client: bob, key } = await app.enrolled(address('bob'));
    const id = await idOf(app, address('bob'));
    const stranger = await app.client().signIn(address('bob'), '/', 'other');
    expect(stranger.status).toBe(403);
    await touchedAgo(app, address('bob'), 301);
    expect((await bob.signIn(address('bob'), '/', 'other')).status).toBe(403);
    expect(await count(app.dataSource, 'identities WHERE user_id = $1', [id])).toBe(1);
    expect(await eventsOf(app, domain, 'identity_bind_refused')).toHaveLength(2);
    expect((await bob.logIn(key)).status).toBe(200);
    expect((await bob.signIn(address('bob'), '/', 'other')).status).toBe(200);
    expect(await count(app.dataSource, 'identities WHERE user_id = $1', [id])).toBe(2);
    expect((await bob.get('/v1/keys')).status).toBe(200);
  });

  it('a member with a fresh key does not add an identity to another member', async () => {
    const { founder, address } = await founded(app);
    await allow(founder.client, 'other');
    await app.enrolled(address('carol'));
    const { client: bob } = await app.enrolled(address('bob'));
    expect((await bob.signIn(address('carol'), '/', 'other')).status).toBe(403);
    const carol = await idOf(app, address('carol'));
    expect(await count(app.dataSource, 'identities WHERE user_id = $1', [carol])).toBe(1);
  });
});
