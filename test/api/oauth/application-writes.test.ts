import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Members } from '../../../src/domain/directory/members.service.js';
import { RoutePolicies } from '../../../src/platform/http/routing/route-policies.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { newAddress } from '../../support/client.js';
import { databaseDigest } from '../../support/database-digest.js';
import { touchedAgo } from '../../support/keys.js';
import { CALLBACK, newCodeFields, newDpopKey, postForm } from '../../support/oauth-flow.js';
import { withLateBody } from '../../support/raw-http.js';

const ADMIN = 'ada@application-writes.example';

describe('the writes of /api/v1/applications', () => {
  let app: TestApp;
  let ada: EnrolledUser;
  beforeAll(async () => {
    app = await startTestApp();
    ada = await app.enrolled(ADMIN);
    // Gives svc-cli the authorization-code grant as well, because the rule must hold for every
    // grant.
    await app.dataSource.query(
      `UPDATE oauth_clients SET metadata = metadata || $1 WHERE id = 'svc-cli'`,
      [{ redirect_uris: [CALLBACK], grant_types: ['authorization_code'] }],
    );
  });
  afterAll(() => app.close());

  it('lock the session of an admin once, together with the role', async () => {
    const site = { name: 'Locked', type: 'web', redirect_uris: [CALLBACK] };
    const { json } = await ada.client.post('/api/v1/applications', site);
    const members = app.nest.get(Members, { strict: false });
    const [role, session] = [vi.spyOn(members, 'isAdminHeld'), vi.spyOn(members, 'isSessionHeld')];
    const path = `/api/v1/applications/${String(json.client_id)}`;
    const answer = await ada.client.send('PATCH', path, { body: { name: 'Once' } });
    const calls = [role.mock.calls.length, session.mock.calls.length];
    vi.restoreAllMocks();
    expect([answer.status, ...calls]).toEqual([200, 1, 0]);
  });

  it('10.10 each states a touch of 5 minutes, and refuses an older session without a change', async () => {
    const site = { name: 'Site', type: 'web', redirect_uris: [CALLBACK] };
    const { json } = await ada.client.post('/api/v1/applications', site);
    const id = json.client_id as string;
    const { json: list } = await ada.client.get(`/api/v1/applications/${id}/secrets`);
    const [secret] = list.secrets as { id: string }[];
    const writes = app.nest
      .get(RoutePolicies)
      .routes.filter(
        ({ method, template }) =>
          template.startsWith('/api/v1/applications') && !['GET', 'HEAD'].includes(method),
      );
    expect(writes.length).toBeGreaterThanOrEqual(6);
    await touchedAgo(app, ADMIN, 301);
    const before = await databaseDigest(app.dataSource);
    for (const { method, template, policy } of writes) {
      const path = template.replace(':id', id).replace(':secretId', secret?.id ?? '');
      const isDelete = method === 'DELETE';
      const body = method === 'POST' && path.endsWith('/applications') ? site : {};
      const answer = await ada.client.send(method, path, {
        address: newAddress(),
        ...(isDelete ? {} : { body }),
      });
      const { auth } = policy;
      expect([method, template, auth.session, auth.touchedWithinSeconds]).toEqual([
        method,
        template,
        'verified',
        300,
      ]);
      expect([method, template, answer.status, answer.json?.code]).toEqual([
        method,
        template,
        401,
        'insufficient_user_authentication',
      ]);
      expect(answer.headers.get('www-authenticate')).toContain('max_age="300"');
    }
    expect(await databaseDigest(app.dataSource)).toEqual(before);
    await touchedAgo(app, ADMIN, 0);
    const changed = await ada.client.send('PATCH', `/api/v1/applications/${id}`, {
      body: { name: 'Other' },
    });
    expect(changed.status).toBe(200);
  });

  it('end with the session: a request whose body comes after its end changes nothing', async () => {
    const { client: bob } = await app.enrolled('bob@application-writes.example');
    const site = { name: 'Site', type: 'web', redirect_uris: [CALLBACK] };
    const { client_id: id } = (await bob.post('/api/v1/applications', site)).json;
    const headers = {
      cookie: `svc_session=${bob.cookie('svc_session')}`,
      origin: app.baseUrl,
      'content-type': 'application/json',
    };
    const writes = [
      ['POST /api/v1/applications', { ...site, name: 'Another' }],
      [`PATCH /api/v1/applications/${id}`, { redirect_uris: ['https://evil.example/'] }],
      [`POST /api/v1/applications/${id}/secrets`, {}],
    ] as const;
    const late = await Promise.all(
      writes.map(([line, body]) => withLateBody(app.baseUrl, line, headers, body)),
    );
    await app.dataSource.query(
      "DELETE FROM sessions s USING users u WHERE u.id = s.user_id AND u.email LIKE 'bob@%'",
    );
    const before = await databaseDigest(app.dataSource);
    const answers = await Promise.all(late.map((send) => send()));
    expect(answers.map(({ status, body }) => [status, JSON.parse(body).code])).toEqual(
      writes.map(() => [401, 'unauthenticated']),
    );
    expect(await databaseDigest(app.dataSource)).toEqual(before);
  });

  /** Gets a code as svc-cli for `svc:applications`, and redeems it with the given headers. */
  async function redeem(headers: Record<string, string>) {
    const scope = 'openid svc:credentials svc:applications';
    const code = await newCodeFields(ada.client, 'svc-cli', { scope, key: ada.key });
    return postForm(app, '/oauth/token', { client_id: 'svc-cli', ...code }, headers);
  }

  it('10.1 svc:applications is omitted from a token without a DPoP key', async () => {
    const { status, json } = await redeem({});
    expect([status, json.token_type, json.scope]).toEqual([
      200,
      'Bearer',
      'openid svc:credentials',
    ]);
  });

  it('10.1 svc:applications comes with a DPoP key, for 15 minutes', async () => {
    const dpop = await (await newDpopKey()).proof('POST', `${app.baseUrl}/oauth/token`);
    const { status, json } = await redeem({ dpop });
    expect([status, json]).toMatchObject([
      200,
      { token_type: 'DPoP', scope: 'openid svc:credentials svc:applications', expires_in: 900 },
    ]);
  });
});
