import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RecentEnds } from '../../../src/domain/admin/database-failover/reconciliation/recent-ends.js';
import { redo } from '../../../src/domain/admin/database-failover/reconciliation/redo.js';
import { MemberRecords } from '../../../src/domain/admin/members/member-records.service.js';
import { MEMBER_QUERY } from '../../../src/domain/admin/members/member-search.js';
import { operatorAccess } from '../../../src/domain/admin/operator-access/compose-access.js';
import { warnOfExpiry } from '../../../src/domain/directory/api-tokens/expiry-warning.js';
import { ManagedApplications } from '../../../src/domain/oauth/applications/managed-applications.service.js';
import { managerOfProgram } from '../../../src/features/oidc/applications/application-manager.js';
import { hashOpaqueToken } from '../../../src/platform/crypto/opaque-token.js';
import { RoutePolicies } from '../../../src/platform/http/routing/route-policies.js';
import {
  asProgram,
  furtherAdmin,
  madeApiToken,
  TEST_NETWORKS,
  type CreatedApiToken,
} from '../../support/api-tokens.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addWebApplication } from '../../support/applications.js';
import { newAddress, type Client } from '../../support/client.js';
import { touchedAgo } from '../../support/keys.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';

const READS = ['audit:read', 'members:read', 'applications:read', 'access:read'] as const;
const ROTATES = 'scim-tokens:rotate';
const PATCH = { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'] };

let app: TestApp;
/** Ada is the admin of one organization, and eve of another. */
let ada: Client;
let eve: Client;
/** The SCIM token of ada's organization. */
let scimToken: { id: string; token: string };
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled('ada@programs.example'));
  ({ client: eve } = await app.enrolled('eve@elsewhere.example'));
  scimToken = (await orgApi(ada, 'POST', '/scim-tokens', { description: 'Okta' })).json;
  await orgApi(ada, 'PATCH', '', { membership: 'open' });
});
afterAll(() => app.close());

const status = async (token: string, path = 'audit-events', method = 'GET') =>
  (await asProgram(app, token, method, path)).status;
const listed = async (admin: Client) => (await orgApi(admin, 'GET', '/api-tokens')).json;
const newScimToken = async (admin: Client, days = 90) =>
  (await orgApi(admin, 'POST', '/scim-tokens', { description: 'Entra', expires_in_days: days }))
    .json as { id: string; token: string };
const rotating = (admin: Client, ids: readonly string[], more: object = {}) =>
  madeApiToken(admin, [ROTATES, 'audit:read'], {
    allowed_cidrs: TEST_NETWORKS,
    scim_token_ids: ids,
    ...more,
  });
const rotated = (token: string, id: string, hours = 24) =>
  asProgram(app, token, 'POST', `scim-tokens/${id}/rotate`, { body: { overlap_hours: hours } });
const scim = (token: string, method: string, path: string, body?: unknown) =>
  asProgram(app, token, method, `/scim/v2${path}`, { body });
const auditOfToken = (id: string) =>
  rows<{ type: string; class: string; details: Record<string, unknown> }>(
    app.dataSource,
    `SELECT type, class, details FROM audit_events WHERE details ->> 'api_token_id' = $1 ORDER BY id`,
    [id],
  );

describe('an API token', () => {
  it('is shown once, has 256 random bits, is stored as its SHA-256, and is in no log', async () => {
    const { id, token, ...rest } = await madeApiToken(ada);
    expect(rest).toMatchObject({ name: 'SIEM', scopes: ['audit:read'], allowed_cidrs: [] });
    expect(token).toMatch(/^svc_api_[\w-]{43}$/);
    const [row] = await rows(app.dataSource, 'SELECT hash FROM api_tokens WHERE id = $1', [id]);
    expect(row).toEqual({ hash: hashOpaqueToken(token) });
    expect(await status(token)).toBe(200);
    expect(await status(`${token}x`)).toBe(401);
    const secret = token.slice('svc_api_'.length);
    for (const text of [
      (await orgApi(ada, 'GET', '/api-tokens')).text,
      (await ada.get('/admin/api-tokens')).text,
      app.log.join(''),
      JSON.stringify(await auditOfToken(id)),
    ]) {
      expect(text).not.toContain(secret);
    }
    expect(await auditOfToken(id)).toMatchObject([{ type: 'api_token_created', class: 'admin' }]);
  });

  it('is made, rotated and revoked by a recent touch, and listed without one', async () => {
    const { id } = await madeApiToken(ada);
    await touchedAgo(app, 'ada@programs.example', 301);
    const body = { name: 'SIEM', scopes: ['audit:read'] };
    for (const answer of [
      await orgApi(ada, 'POST', '/api-tokens', body),
      await orgApi(ada, 'POST', `/api-tokens/${id}/rotate`, {}),
      await orgApi(ada, 'DELETE', `/api-tokens/${id}`),
    ]) {
      expect(answer.json).toMatchObject({ code: 'insufficient_user_authentication' });
    }
    expect((await listed(ada)).tokens[0]).toMatchObject({ id });
    await touchedAgo(app, 'ada@programs.example', 0);
    expect((await orgApi(ada, 'DELETE', `/api-tokens/${id}`)).status).toBe(204);
    expect((await orgApi(ada, 'DELETE', `/api-tokens/${id}`)).status).toBe(404);
  });

  it.each([
    ['no scope', { scopes: [] }],
    ['an unknown scope', { scopes: ['svc:admin'] }],
    ['a rotation from every address', { scopes: [ROTATES], scim_token_ids: ['ID'] }],
    ['a rotation of no token', { scopes: [ROTATES], allowed_cidrs: ['192.0.2.0/24'] }],
    ['tokens without the scope', { scopes: ['audit:read'], scim_token_ids: ['ID'] }],
    ['nearly every address', { scopes: ['audit:read'], allowed_cidrs: ['128.0.0.0/1'] }],
    ['IPv4 in hex', { scopes: ['audit:read'], allowed_cidrs: ['::ffff:c000:200/120'] }],
    ['a network that is none', { scopes: ['audit:read'], allowed_cidrs: ['10.0.0.0/33'] }],
    ['366 days', { scopes: ['audit:read'], expires_in_days: 366 }],
  ])('is not made for %s', async (_, wanted) => {
    const text = JSON.stringify({ name: 'x', ...wanted }).replace('ID', scimToken.id);
    const answer = await orgApi(ada, 'POST', '/api-tokens', JSON.parse(text));
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });

  it('opens the reads of its scopes, each alone, for its own organization', async () => {
    const paths = ['audit-events', 'members', 'applications', 'access'];
    for (const [n, scope] of READS.entries()) {
      const { token } = await madeApiToken(ada, [scope]);
      for (const [m, path] of paths.entries()) {
        const answer = await asProgram(app, token, 'GET', path);
        expect([scope, path, answer.status]).toEqual([scope, path, n === m ? 200 : 403]);
        if (n !== m) expect(answer.json.code).toBe('insufficient_scope');
      }
    }
    const { token } = await madeApiToken(eve, READS);
    const members = await asProgram(app, token, 'GET', 'members');
    expect(members.json.members).toMatchObject([{ email: 'eve@elsewhere.example' }]);
    const events = (await asProgram(app, token, 'GET', 'audit-events')).text;
    expect(events).not.toContain('programs.example');
  });

  it('shows one application and one target by their scopes, and none of another organization', async () => {
    const { clientId: id } = await addWebApplication(app, 'ada@programs.example');
    const { token: own } = await madeApiToken(ada, READS);
    const { token: narrow } = await madeApiToken(ada, ['audit:read']);
    const { token: foreign } = await madeApiToken(eve, READS);
    for (const path of [`applications/${id}`, `access/application/${id}`]) {
      const statuses = [];
      for (const token of [own, narrow, foreign]) statuses.push(await status(token, path));
      expect([path, ...statuses]).toEqual([path, 200, 403, 404]);
    }
  });

  it('is told where to go on if the database lost its place in the log', async () => {
    const { id, token } = await madeApiToken(ada);
    const beyond = Buffer.from(`1 999999999999 ${id}`).toString('base64url');
    const path = `audit-events?order=asc&after=${beyond}`;
    const answer = await asProgram(app, token, 'GET', path);
    expect(answer).toMatchObject({ status: 409, json: { code: 'feed_restarted' } });
  });

  it('reads the log in the order and the forms that an admin gets', async () => {
    const { token } = await madeApiToken(ada, READS);
    for (const query of [
      'order=asc&limit=1000',
      'order=asc&format=ndjson',
      'order=asc&format=ocsf',
      'format=ocsf&type=api_token_created',
      'type=api_token_created&limit=2',
      'type=api_token_created&format=csv',
    ]) {
      // The feed shows an event only when no older one can still commit, which can happen between
      // two requests. So the test repeats until two reads agree.
      const { settled, theirs } = await vi.waitFor(async () => {
        const before = await orgApi(ada, 'GET', `/audit-events?${query}`);
        const between = await asProgram(app, token, 'GET', `audit-events?${query}`);
        const after = await orgApi(ada, 'GET', `/audit-events?${query}`);
        expect(before.text).toBe(after.text);
        return { settled: after.text, theirs: between };
      }, 90_000);
      expect([query, theirs.status, theirs.text]).toEqual([query, 200, settled]);
    }
  });

  it('opens nothing else of all routes of the service', async () => {
    const { token } = await rotating(ada, [scimToken.id], { scopes: [...READS, ROTATES] });
    const wrong: unknown[] = [];
    let guarded = 0;
    for (const { method, template, policy } of app.nest.get(RoutePolicies).routes) {
      if (policy.auth.session === 'program') continue;
      const path = template.replaceAll(/:\w+/g, scimToken.id);
      const answer = await asProgram(app, token, method, path);
      if (policy.auth.session === 'none') {
        const without = await app.client().send(method, path, { headers: { origin: '' } });
        // The OAuth endpoints take the header for client authentication, and answer 400.
        const isRefused = template.startsWith('/oauth/') && answer.status === 400;
        if (answer.status !== without.status && !isRefused)
          wrong.push([method, template, answer.status]);
        continue;
      }
      guarded += 1;
      if (![401, 403].includes(answer.status)) wrong.push([method, template, answer.status]);
    }
    expect(wrong).toEqual([]);
    expect(guarded).toBeGreaterThan(150);
  });

  it('is the only token that opens the routes of programs', async () => {
    for (const token of [scimToken.token, 'svc_api_', '']) expect(await status(token)).toBe(401);
    expect((await ada.get('/api/v1/programs/members')).status).toBe(401);
    expect((await ada.get('/api/v1/programs/nothing')).status).toBe(404);
  });

  it('is named as wrong in the challenge of a request that has one, and of no other', async () => {
    const { token } = await madeApiToken(ada, ['members:read']);
    const challenge = async (path: string, headers: Record<string, string>) => {
      const address = newAddress();
      const answer = await app.client().get(`/api/v1/programs/${path}`, { address, headers });
      return [answer.status, answer.headers.get('www-authenticate')?.split(', resource')[0]];
    };
    const none = [401, expect.stringMatching(/^Bearer resource_metadata="[^"]+"$/)];
    expect(await challenge('members', {})).toEqual(none);
    expect(await challenge(`members?access_token=${token}`, {})).toEqual(none);
    expect(await challenge('members', { cookie: `svc_session=${token}` })).toEqual(none);
    const wrong = [401, expect.stringContaining('error="invalid_token"')];
    expect(await challenge('members', { authorization: 'Bearer svc_api_x' })).toEqual(wrong);
    expect(await challenge('members', { authorization: `DPoP ${token}` })).toEqual(wrong);
    const here = { authorization: `Bearer ${token}` };
    expect(await challenge('members', here)).toEqual([200, undefined]);
    expect(await challenge(`members?access_token=${token}`, here)).toEqual([400, undefined]);
  });

  it('is refused from another address like a wrong one, which the log alone tells', async () => {
    const { id, token } = await madeApiToken(ada, READS, { allowed_cidrs: ['10.200.1.9/24'] });
    expect((await listed(ada)).tokens[0]).toMatchObject({ allowed_cidrs: ['10.200.1.0/24'] });
    const from = (address: string, presented = token) =>
      asProgram(app, presented, 'GET', 'members', { address });
    const refused = await from('10.200.2.1');
    expect(refused.status).toBe(401);
    expect(refused.json).toEqual((await from('10.200.1.1', 'svc_api_x')).json);
    const warned = () =>
      app.log.filter(
        (line) => line.includes('address that it does not allow') && line.includes(id),
      );
    expect(warned()).toHaveLength(1);
    const used = async () =>
      count(app.dataSource, 'api_tokens WHERE id = $1 AND last_used_at IS NOT NULL', [id]);
    expect(await used()).toBe(0);
    expect((await from('10.200.1.77')).status).toBe(200);
    expect(await used()).toBe(1);

    // One hour after the last log line, only one of 20 requests at once is logged.
    const hour = "refusal_noted_at = refusal_noted_at - interval '61 minutes'";
    await rows(app.dataSource, `UPDATE api_tokens SET ${hour} WHERE id = $1`, [id]);
    await Promise.all(Array.from({ length: 20 }, () => from(newAddress())));
    expect(warned()).toHaveLength(2);
  });

  it('is looked up again after a list has waited for a connection', async () => {
    const { id } = await madeApiToken(eve, READS);
    const orgId =
      (
        await rows<{ org_id: string }>(
          app.dataSource,
          'SELECT org_id FROM api_tokens WHERE id = $1',
          [id],
        )
      )[0]?.org_id ?? '';
    const program = { apiTokenId: id, orgId };
    const lists = () =>
      Promise.allSettled([
        app.nest.get(MemberRecords, { strict: false }).list(program, MEMBER_QUERY.parse({})),
        app.nest
          .get(ManagedApplications, { strict: false })
          .list(managerOfProgram(program), '', program),
      ]);
    expect((await lists()).map(({ status: of }) => of)).toEqual(['fulfilled', 'fulfilled']);
    await orgApi(eve, 'DELETE', `/api-tokens/${id}`);
    const ended = {
      status: 'rejected',
      reason: expect.objectContaining({ code: 'unauthenticated' }),
    };
    expect(await lists()).toEqual([ended, ended]);
  });

  it('opens nothing after its end', async () => {
    const { id, token } = await madeApiToken(ada);
    await rows(app.dataSource, 'UPDATE api_tokens SET expires_at = now() WHERE id = $1', [id]);
    expect(await status(token)).toBe(401);
    expect((await listed(ada)).tokens.map((each: { id: string }) => each.id)).not.toContain(id);
  });

  it('of another organization does not exist', async () => {
    const { id } = await madeApiToken(ada);
    expect((await orgApi(eve, 'DELETE', `/api-tokens/${id}`)).status).toBe(404);
    expect((await orgApi(eve, 'POST', `/api-tokens/${id}/rotate`, {})).status).toBe(404);
    expect((await eve.get(`/admin/api-tokens/${id}/rotate`)).status).toBe(404);
    const body = { name: 'x', scopes: [ROTATES], allowed_cidrs: ['192.0.2.0/24'] };
    const foreign = { ...body, scim_token_ids: [scimToken.id] };
    expect((await orgApi(eve, 'POST', '/api-tokens', foreign)).status).toBe(404);
    expect(await status((await madeApiToken(ada)).token)).toBe(200);
  });
});

describe('the coming end of an API token', () => {
  it('is on the pages 30 days before, and in the log once in the last 7 days', async () => {
    const { id } = await madeApiToken(eve, ['audit:read'], { name: 'soon' });
    const set = (days: number) =>
      rows(
        app.dataSource,
        'UPDATE api_tokens SET expires_at = now() + make_interval(days => $2) WHERE id = $1',
        [id, days],
      );
    const warned = async () => {
      await warnOfExpiry(app.dataSource.manager);
      return app.log.filter((line) => line.includes('expires soon') && line.includes(id)).length;
    };
    expect((await eve.get('/admin/api-tokens')).text).not.toContain('data-expiring');
    await set(29);
    expect((await eve.get('/admin/api-tokens')).text).toContain('data-expiring');
    expect((await eve.get('/admin')).text).toMatch(/API tokens[^]*One token expires/);
    expect(await warned()).toBe(0);
    await set(6);
    expect([await warned(), await warned()]).toEqual([1, 1]);
  });
});

describe('the rotation of an API token', () => {
  it('gives one successor to 20 requests at once, and keeps the old one for the overlap', async () => {
    const old = await madeApiToken(ada, READS, { expires_in_days: 30 });
    const rotate = () => orgApi(ada, 'POST', `/api-tokens/${old.id}/rotate`, { overlap_hours: 2 });
    const answers = await Promise.all(Array.from({ length: 20 }, rotate));
    const won = answers.filter((answer) => answer.status === 201);
    expect(won).toHaveLength(1);
    expect(answers.filter(({ json }) => json.code === 'rotation_pending')).toHaveLength(19);
    const successor = won[0]?.json as CreatedApiToken;
    expect(successor).toMatchObject({ name: 'SIEM', scopes: READS, replaces: old.id });
    for (const { token } of [old, successor]) expect(await status(token)).toBe(200);
    const ends = (await listed(ada)).tokens.find((each: { id: string }) => each.id === old.id);
    const hours = (Date.parse(ends.expires_at) - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(1.9);
    expect(hours).toBeLessThanOrEqual(2);
    const details = { replaces: old.id, replaced_ends_at: ends.expires_at };
    expect(await auditOfToken(successor.id)).toMatchObject([
      { type: 'api_token_rotated', details },
    ]);
  });

  it('ends the old token at once without an overlap', async () => {
    const old = await madeApiToken(ada);
    const answer = await orgApi(ada, 'POST', `/api-tokens/${old.id}/rotate`, { overlap_hours: 0 });
    expect([answer.status, await status(old.token)]).toEqual([201, 401]);
    expect(await status(answer.json.token)).toBe(200);
    const types = (await auditOfToken(old.id)).map(({ type }) => type);
    expect(types).toEqual(['api_token_created', 'api_token_revoked']);
  });

  it('leaves two tokens of a chain: the one before the replaced one ends at once', async () => {
    const rotate = async ({ id }: CreatedApiToken) =>
      (await orgApi(ada, 'POST', `/api-tokens/${id}/rotate`, {})).json as CreatedApiToken;
    const first = await madeApiToken(ada);
    const second = await rotate(first);
    expect([await status(first.token), await status(second.token)]).toEqual([200, 200]);

    const answers = await Promise.all(
      Array.from({ length: 20 }, () => orgApi(ada, 'POST', `/api-tokens/${second.id}/rotate`, {})),
    );
    const [won, ...more] = answers.filter((answer) => answer.status === 201);
    expect(more).toEqual([]);
    expect(answers.filter(({ json }) => json.code === 'rotation_pending')).toHaveLength(19);
    const third = won?.json as CreatedApiToken;
    const chain = [first, second, third];
    expect(await Promise.all(chain.map(({ token }) => status(token)))).toEqual([401, 200, 200]);
    const types = async ({ id }: CreatedApiToken) =>
      (await auditOfToken(id)).map(({ type }) => type);
    expect(await types(first)).toEqual(['api_token_created', 'api_token_revoked']);
    expect(await types(second)).toEqual(['api_token_rotated']);
    expect(await types(third)).toEqual(['api_token_rotated']);
    expect((await orgApi(ada, 'POST', `/api-tokens/${first.id}/rotate`, {})).status).toBe(409);

    const fourth = await rotate(third);
    expect(await Promise.all([...chain, fourth].map(({ token }) => status(token)))).toEqual([
      401, 401, 200, 200,
    ]);
  });
});

describe('a rotation without a body', () => {
  const hoursUntil = (time: string) => (Date.parse(time) - Date.now()) / 3_600_000;

  it('of an API token has the default of each member', async () => {
    const old = await madeApiToken(ada, READS, { expires_in_days: 30 });
    const answer = await orgApi(ada, 'POST', `/api-tokens/${old.id}/rotate`);
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
    expect(hoursUntil(answer.json.expires_at)).toBeCloseTo(30 * 24, 0);
    const ends = (await listed(ada)).tokens.find((each: { id: string }) => each.id === old.id);
    expect(hoursUntil(ends.expires_at)).toBeCloseTo(24, 0);
    expect((await orgApi(ada, 'POST', `/api-tokens/${old.id}/rotate`, [])).status).toBe(400);
  });

  it('of a SCIM token by a program has the default overlap', async () => {
    const old = await newScimToken(ada);
    const { token } = await rotating(ada, [old.id]);
    const answer = await asProgram(app, token, 'POST', `scim-tokens/${old.id}/rotate`);
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
    expect(hoursUntil(answer.json.replaced_ends_at)).toBeCloseTo(24, 0);
  });
});

describe('the end of the admin who made an API token', () => {
  const operator = { name: 'olga', uid: 0, loginUid: undefined, claimedUser: undefined, host: 'h' };
  const userOf = async (client: Client, id: string) =>
    (await orgApi(client, 'GET', `/members/${id}`)).json;

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['removed by an admin', (id) => orgApi(ada, 'POST', `/members/${id}/remove`)],
    ['deactivated by an admin', (id) => orgApi(ada, 'POST', `/members/${id}/deactivate`)],
    ['revoked by an admin', (id) => orgApi(ada, 'POST', `/members/${id}/revoke-credentials`)],
    ['given a pass', (id) => orgApi(ada, 'POST', `/members/${id}/enrollment-passes`)],
    ['removed by SCIM', (id) => scim(scimToken.token, 'DELETE', `/Users/${id}`)],
    [
      'deactivated by SCIM',
      (id) =>
        scim(scimToken.token, 'PATCH', `/Users/${id}`, {
          ...PATCH,
          Operations: [{ op: 'replace', path: 'active', value: false }],
        }),
    ],
    [
      'revoked by the operator',
      (userId) =>
        operatorAccess(app.dataSource).perform({ kind: 'revoke-everything', userId, operator }),
    ],
  ])('ends the token at once: %s', async (how, act) => {
    const email = `${how.toLowerCase().replaceAll(' ', '-')}@programs.example`;
    if (how.includes('SCIM')) {
      const user = { userName: email, schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'] };
      expect((await scim(scimToken.token, 'POST', '/Users', user)).status).toBe(201);
    }
    const maker = await furtherAdmin(app, ada, email);
    const { id, token } = await madeApiToken(maker.client, READS, { name: `of ${how}` });
    expect(await status(token)).toBe(200);
    const before = await userOf(ada, maker.id);
    expect(before.api_tokens).toMatchObject([{ id, name: `of ${how}` }]);
    expect(before.ending.remove).toMatchObject({ api_tokens: 1 });
    expect((await ada.get(`/admin/members/${maker.id}`)).text).toContain(`<bdi>of ${how}</bdi>`);
    await act(maker.id);
    expect(await status(token)).toBe(401);
    const events = await auditOfToken(id);
    expect(events.map(({ type }) => type)).toEqual(['api_token_created', 'api_token_revoked']);
    expect(events[1]?.details).toMatchObject({ name: `of ${how}` });
    const alert = app.log.find(
      (line) => line.includes('API tokens ended with') && line.includes(id),
    );
    expect(alert).toContain(`of ${how}`);
    const { ended_with_maker: ended } = await listed(ada);
    expect(ended.map((each: { id: string }) => each.id)).toContain(id);
  });

  it('ends the token even if only the row of the user tells', async () => {
    const maker = await furtherAdmin(app, ada, 'row@programs.example');
    const { token } = await madeApiToken(maker.client);
    const set = (active: boolean) =>
      rows(app.dataSource, 'UPDATE users SET active = $2 WHERE id = $1', [maker.id, active]);
    await set(false);
    expect(await status(token)).toBe(401);
    await set(true);
    await rows(app.dataSource, 'UPDATE users SET is_org_admin = false WHERE id = $1', [maker.id]);
    expect(await status(token)).toBe(401);
  });

  it('leaves a token of which another admin makes the successor in one press, with the same cursor', async () => {
    const maker = await furtherAdmin(app, ada, 'leaver@programs.example');
    const ids = [(await newScimToken(ada)).id];
    const old = await rotating(maker.client, ids);
    const page = (token: string, after = '') =>
      asProgram(app, token, 'GET', `audit-events?order=asc&limit=5${after}`);
    const { next } = (await page(old.token)).json;
    await orgApi(ada, 'POST', `/members/${maker.id}/remove`);
    expect((await page(old.token, `&after=${next}`)).status).toBe(401);
    expect((await ada.get('/admin/api-tokens')).text).toContain(`data-lost-token="${old.id}"`);

    const body = { overlap_hours: 24 };
    const press = () => orgApi(ada, 'POST', `/api-tokens/${old.id}/rotate`, body);
    const answers = await Promise.all(Array.from({ length: 5 }, press));
    const [made, ...more] = answers.filter((answer) => answer.status === 201);
    expect(more).toEqual([]);
    expect(made?.json).toMatchObject({ name: 'SIEM', scim_token_ids: ids, replaces: old.id });
    expect(made?.json.token).not.toBe(old.token);
    expect((await page(made?.json.token, `&after=${next}`)).json.events).toHaveLength(5);
    expect((await page(old.token)).status).toBe(401);
    expect((await rotated(made?.json.token, ids[0] ?? '')).status).toBe(201);
    expect((await listed(ada)).ended_with_maker).not.toContainEqual(
      expect.objectContaining({ id: old.id }),
    );
  });

  it('gives no successor of a token that an admin revoked', async () => {
    const { id } = await madeApiToken(ada);
    await orgApi(ada, 'DELETE', `/api-tokens/${id}`);
    expect((await orgApi(ada, 'POST', `/api-tokens/${id}/rotate`, {})).status).toBe(404);
  });
});

describe('the demotion of the admin who made an API token', () => {
  it('ends the scope to rotate at once and the reads after 7 days, and names the tokens', async () => {
    const maker = await furtherAdmin(app, ada, 'demoted@programs.example');
    const target = await newScimToken(ada);
    const both = await rotating(maker.client, [target.id], { name: 'reads and rotates' });
    const only = await rotating(maker.client, [target.id], { name: 'rotates', scopes: [ROTATES] });
    expect((await ada.get(`/admin/members/${maker.id}`)).text).toContain('reads and rotates');
    expect((await orgApi(ada, 'POST', `/members/${maker.id}/demote`)).status).toBe(200);

    expect(await status(both.token)).toBe(200);
    const refused = await rotated(both.token, target.id);
    expect([refused.status, refused.json.code]).toEqual([403, 'insufficient_scope']);
    expect((await rotated(only.token, target.id)).status).toBe(401);
    const { tokens, ended_with_maker: ended } = await listed(ada);
    const left = tokens.find((each: { id: string }) => each.id === both.id);
    const days = (Date.parse(left.expires_at) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(6.9);
    expect(days).toBeLessThanOrEqual(7);
    expect(ended.map((each: { id: string }) => each.id)).toContain(only.id);
    const alerts = app.log.filter((line) => line.includes('"apiTokens"')).join('');
    for (const { id } of [both, only]) expect(alerts).toContain(id);

    // The maker becomes an admin again, but the token does not get its scope back.
    await orgApi(ada, 'POST', `/members/${maker.id}/promote`);
    expect((await rotated(both.token, target.id)).status).toBe(403);
    await rows(app.dataSource, 'UPDATE api_tokens SET expires_at = now() WHERE id = $1', [both.id]);
    expect(await status(both.token)).toBe(401);
    const successor = await orgApi(ada, 'POST', `/api-tokens/${both.id}/rotate`, {});
    expect((await rotated(successor.json.token, target.id)).status).toBe(201);
  });
});

describe('a program that rotates a SCIM token', () => {
  const opens = async (token: string) => (await scim(token, 'GET', '/Users')).status === 200;
  const DAY = 86_400_000;

  it('gets a token for no longer than the old one and the API token, and at most two of a chain', async () => {
    const first = await newScimToken(ada, 10);
    const { token, expires_at: end } = await rotating(ada, [first.id], { expires_in_days: 20 });
    const second = await rotated(token, first.id);
    expect([second.status, second.json.token]).toEqual([201, expect.stringMatching(/^svc_scim_/)]);
    const { created_at: from, expires_at: to, replaced_ends_at: oldEnd } = second.json;
    expect(Date.parse(to) - Date.parse(from)).toBe(10 * DAY);
    expect(Date.parse(oldEnd) - Date.parse(from)).toBe(DAY);
    expect([await opens(first.token), await opens(second.json.token)]).toEqual([true, true]);

    // The scope of the API token is now for the new SCIM token.
    const stale = await rotated(token, first.id);
    expect([stale.status, stale.json.code]).toEqual([409, 'token_rotated']);
    expect(stale.json.detail).toContain(second.json.id);
    const third = await rotated(token, second.json.id);
    expect(third.status).toBe(201);
    expect([
      await opens(first.token),
      await opens(second.json.token),
      await opens(third.json.token),
    ]).toEqual([false, true, true]);
    const fourth = await rotated(token, third.json.id, 0);
    expect(await opens(third.json.token)).toBe(false);
    expect(await opens(fourth.json.token)).toBe(true);

    const long = await newScimToken(ada, 365);
    const short = await rotating(ada, [long.id], { expires_in_days: 2 });
    const bounded = (await rotated(short.token, long.id)).json;
    expect(bounded.expires_at).toBe(short.expires_at);
    expect(Date.parse(end)).toBeGreaterThan(Date.parse(bounded.expires_at));
  });

  it('20 at once: one wins, and at most two tokens of the chain live', async () => {
    const first = await newScimToken(ada);
    const tokens = [await rotating(ada, [first.id]), await rotating(ada, [first.id])];
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => rotated(tokens[n % 2]?.token ?? '', first.id)),
    );
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(1);
    expect(answers.filter(({ json }) => json.code === 'token_rotated')).toHaveLength(19);
    expect(
      await count(
        app.dataSource,
        'scim_tokens WHERE (id = $1 OR replaces = $1) AND revoked_at IS NULL AND expires_at > now()',
        [first.id],
      ),
    ).toBe(2);
    const won = answers.find((answer) => answer.status === 201)?.json;
    // both API tokens are now for the new SCIM token
    for (const { token } of tokens) await rotated(token, won.id);
    const audited = await rows<{ type: string }>(
      app.dataSource,
      "SELECT type FROM audit_events WHERE details ->> 'scim_token_id' = $1",
      [won.id],
    );
    expect(audited[0]).toMatchObject({ type: 'scim_token_created' });
    expect(app.log.join('')).not.toContain(won.token.slice('svc_scim_'.length));
  });

  it('rotates no token that its API token does not name, and none of another organization', async () => {
    const named = await newScimToken(ada);
    const other = await newScimToken(ada);
    const foreign = await newScimToken(eve);
    const { token } = await rotating(ada, [named.id]);
    const unknown = '00000000-0000-7000-8000-000000000000';
    for (const id of [other.id, foreign.id, unknown, 'x']) {
      expect([id, (await rotated(token, id)).status]).toEqual([id, 404]);
    }
    await orgApi(ada, 'DELETE', `/scim-tokens/${named.id}`);
    expect((await rotated(token, named.id)).status).toBe(404);
    for (const hours of [-1, 73, 1.5]) {
      expect((await rotated(token, named.id, hours)).status).toBe(400);
    }
  });

  it('waits while an admin replaces the token, and then goes on with the new one', async () => {
    const old = await newScimToken(ada);
    const { token } = await rotating(ada, [old.id]);
    const body = { description: 'by hand', replaces: old.id };
    const byHand = (await orgApi(ada, 'POST', '/scim-tokens', body)).json;
    expect((await rotated(token, old.id)).json.code).toBe('rotation_pending');
    await orgApi(ada, 'DELETE', `/scim-tokens/${old.id}`);
    expect((await rotated(token, old.id)).json.code).toBe('token_rotated');
    expect((await rotated(token, byHand.id)).status).toBe(201);
  });

  it('goes on with the new one too if the replaced token expires by itself', async () => {
    const old = await newScimToken(ada);
    const { token } = await rotating(ada, [old.id]);
    const body = { description: 'by hand', replaces: old.id };
    const byHand = (await orgApi(ada, 'POST', '/scim-tokens', body)).json;
    await rows(app.dataSource, 'UPDATE scim_tokens SET expires_at = now() WHERE id = $1', [old.id]);
    const stale = await rotated(token, old.id);
    expect([stale.json.code, stale.json.detail]).toEqual([
      'token_rotated',
      expect.stringContaining(byHand.id),
    ]);
    const next = (await rotated(token, byHand.id)).json;
    expect(next.replaces).toBe(byHand.id);
    expect((await rotated(token, next.id)).status).toBe(201);
  });

  it('goes on with the old token if an admin ends the new one', async () => {
    const first = await newScimToken(ada);
    const { token } = await rotating(ada, [first.id]);
    const second = (await rotated(token, first.id)).json;
    await orgApi(ada, 'DELETE', `/scim-tokens/${second.id}`);
    expect((await rotated(token, first.id)).status).toBe(201);
  });

  it('leaves two tokens of the chain if an admin then replaces the new one', async () => {
    const first = await newScimToken(ada);
    const { token } = await rotating(ada, [first.id]);
    const second = (await rotated(token, first.id)).json;
    const body = { description: 'by hand', replaces: second.id };
    const third = (await orgApi(ada, 'POST', '/scim-tokens', body)).json;
    const chain = [first.token, second.token, third.token];
    expect(await Promise.all(chain.map(opens))).toEqual([false, true, true]);
    const ended = `type = 'scim_token_revoked' AND details ->> 'scim_token_id' = $1`;
    expect(await count(app.dataSource, `audit_events WHERE ${ended}`, [first.id])).toBe(1);
  });

  it('either comes before the removal of the maker, or is refused', async () => {
    const maker = await furtherAdmin(app, ada, 'racing@programs.example');
    const first = await newScimToken(ada);
    const { token } = await rotating(maker.client, [first.id]);
    const makerId = await idOf(app, maker.email);
    const [removal, rotation] = await Promise.all([
      orgApi(ada, 'POST', `/members/${makerId}/remove`),
      rotated(token, first.id),
    ]);
    expect(removal.status).toBe(204);
    expect([201, 401]).toContain(rotation.status);
    expect((await rotated(token, rotation.json.id ?? first.id)).status).toBe(401);
  });
});

it('gives a replaced token the end of its overlap again if the database lost the rotation', async () => {
  const scimOld = await newScimToken(ada);
  const old = await rotating(ada, [scimOld.id]);
  await rotated(old.token, scimOld.id, 2);
  await orgApi(ada, 'POST', `/api-tokens/${old.id}/rotate`, { overlap_hours: 2 });
  const ends = app.nest
    .get(RecentEnds, { strict: false })
    .recent()
    .filter(({ acts }) =>
      acts.some(
        (act) =>
          'secretId' in act &&
          act.kind === 'secret_ended' &&
          [scimOld.id, old.id].includes(act.secretId),
      ),
    );
  expect(ends).toHaveLength(2);
  await rows(app.dataSource, 'DELETE FROM audit_events WHERE id = ANY ($1)', [
    ends.map(({ auditId }) => auditId),
  ]);
  const tables = ['scim_tokens', 'api_tokens'];
  for (const table of tables) {
    const set = `UPDATE ${table} SET expires_at = now() + interval '90 days' WHERE id = ANY ($1)`;
    await rows(app.dataSource, set, [[scimOld.id, old.id]]);
  }
  expect((await redo(app.dataSource, ends)).redone).toBe(2);
  for (const table of tables) {
    const valid = `${table} WHERE id = ANY ($1) AND revoked_at IS NULL AND expires_at > now()`;
    const soon = "expires_at <= now() + interval '2 hours'";
    expect(await count(app.dataSource, `${valid} AND ${soon}`, [[scimOld.id, old.id]]), table).toBe(
      1,
    );
  }
});

it('counts wrong API tokens as failed attempts of the network', async () => {
  const address = newAddress();
  const token = 'svc_api_wrong';
  const answers = await Promise.all(
    Array.from({ length: 60 }, () => asProgram(app, token, 'GET', 'members', { address })),
  );
  const wrong = answers.filter((answer) => answer.status === 401).length;
  const same = await Promise.all(
    Array.from({ length: 60 }, () =>
      asProgram(app, 'svc_scim_wrong', 'GET', '/scim/v2/Users', { address: '10.250.1.1' }),
    ),
  );
  // On a slow machine the bucket refills while the requests run, and admits a few more.
  for (const admitted of [wrong, same.filter((answer) => answer.status === 401).length]) {
    expect(admitted).toBeGreaterThanOrEqual(20);
    expect(admitted).toBeLessThan(30);
  }
});
