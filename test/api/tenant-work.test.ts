import type { QueryRunner } from 'typeorm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { sharesOf, TenantWork } from '../../src/platform/database/tenants/tenant-work.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Answer, type Client } from '../support/client.js';
import { lockWaiters } from '../support/lock-waiters.js';
import { orgApi } from '../support/org-api.js';
import { rows } from '../support/rows.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { expectScimError, made, patchOf, withQuery } from '../support/scim-requests.js';

const SHARES = sharesOf(10); // 10 is the SVC_DB_MAX_CONNECTIONS of a test application

let app: TestApp;
let theirs: ScimTenant;
let ours: ScimTenant;
beforeAll(async () => {
  app = await startTestApp();
  theirs = await addTenant(app);
  ours = await addTenant(app);
  for (const tenant of [theirs, ours]) await made(tenant, 'Groups', { displayName: 'somebody' });
});
afterAll(() => app.close());

const costly = (tenant: ScimTenant) =>
  tenant.send('GET', withQuery('/Groups', { filter: 'displayName co "body"' }));
const times = <Of>(howMany: number, act: () => Promise<Of>) =>
  Promise.all(Array.from({ length: howMany }, act));
const stuck = () => lockWaiters(app.dataSource);

/**
 * Locks a table until `release` is called. That makes statements slow for as long as the test
 * needs.
 */
async function locked(table: string): Promise<{ release(): Promise<void> }> {
  const runner: QueryRunner = app.dataSource.createQueryRunner();
  await runner.startTransaction();
  await runner.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
  return {
    async release() {
      if (runner.isReleased) return;
      await runner.rollbackTransaction();
      await runner.release();
    },
  };
}

describe('while the searches of a tenant are slow', () => {
  let groups: Awaited<ReturnType<typeof locked>>;
  beforeEach(async () => {
    groups = await locked('groups');
  });
  afterEach(() => groups.release());

  it('10.2 one tenant has its own share of the costly work, and the others continue', async () => {
    const searches = times(40, () => costly(theirs));
    await expect.poll(stuck).toBe(1);
    const { client } = await app.enrolled('cleo@quiet.example');
    for (let turn = 0; turn < 5; turn += 1) {
      expect((await ours.send('GET', '/Users?attributes=id')).status).toBe(200);
      expect((await client.get('/v1/keys')).status).toBe(200);
    }
    expect(await stuck()).toBe(1);
    await groups.release();
    const statuses = (await searches).map(({ status }) => status);
    expect(statuses).toEqual(statuses.map(() => 200));
  });

  it('10.2 all tenants together do not use the connections of authentication', async () => {
    const { client } = await app.enrolled('ada@quiet.example');
    const many = await times(4, () => addTenant(app));
    const searches = Promise.all(many.map((tenant) => costly(tenant)));
    await expect.poll(stuck).toBe(SHARES.costly);
    for (let turn = 0; turn < 5; turn += 1) {
      expect((await client.get('/v1/keys')).status).toBe(200);
    }
    expect(await stuck()).toBeLessThanOrEqual(SHARES.costly);
    const statuses = (await searches).map(({ status }) => status);
    expect(statuses.every((status) => status === 400 || status === 503)).toBe(true);
  });

  it('10.2 a statement of 3 seconds is tooMany, and so is a long wait for the tenant’s own share', async () => {
    const answers = await times(8, () => costly(theirs));
    const refused = answers.filter(({ status }) => status !== 400);
    expect(answers.length - refused.length).toBeGreaterThan(1);
    expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 429));
    for (const answer of answers) {
      if (answer.status === 400) expectScimError(answer, 400, 'tooMany');
      else expect(answer.headers.get('retry-after')).toBe('1');
      expect(answer.text).not.toContain('database');
    }
  });

  it('10.9 a statement that an operator cancels is 503, and not a fault of the request', async () => {
    const search = costly(theirs);
    await expect.poll(stuck).toBe(1);
    await rows(
      app.dataSource,
      `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    const answer = await search;
    expectScimError(answer, 503);
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/);
  });
});

describe('while the changes of a tenant wait for each other', () => {
  it('10.2 they use their share of the connections, and no more', async () => {
    const { client } = await app.enrolled('ben@quiet.example');
    const group = await made(theirs, 'Groups', { displayName: 'contended' });
    const user = await made(theirs, 'Users', { userName: `b@${theirs.domain}` });
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query('SELECT FROM groups WHERE id = $1 FOR UPDATE', [group.id]);
    const add = patchOf({ op: 'add', path: 'members', value: [{ value: user.id }] });
    const changes = times(20, () => theirs.send('PATCH', `/Groups/${group.id}`, add));
    await expect.poll(stuck).toBe(SHARES.bounded - 1);
    expect((await client.get('/v1/keys')).status).toBe(200);
    expect((await ours.send('GET', '/Users?attributes=id')).status).toBe(200);
    expect(await stuck()).toBe(SHARES.bounded - 1);
    await holder.rollbackTransaction();
    await holder.release();
    const statuses = (await changes).map(({ status }) => status);
    expect(statuses).toEqual(statuses.map(() => 200));
  });
});

describe('work whose cost grows with the data of a tenant', () => {
  let organization: ScimOrganization;
  let admin: Client;
  let orgId: string;
  let userId: string;
  let groupId: string;
  beforeAll(async () => {
    organization = await foundOrganization(app, 'large.example');
    admin = organization.admin.client;
    const user = await organization.scim('POST', '/Users', { userName: 'u@large.example' });
    userId = user.json.id as string;
    const members = [{ value: userId }];
    const group = await organization.scim('POST', '/Groups', { displayName: 'g', members });
    groupId = group.json.id as string;
    const [row] = await rows<{ org_id: string }>(
      app.dataSource,
      'SELECT org_id FROM users WHERE id = $1',
      [userId],
    );
    orgId = row?.org_id ?? '';
  });

  const search = (path: string, filter: string) => () =>
    organization.scim('GET', withQuery(path, { filter }));
  const exported = () =>
    admin.get('/api/v1/org/audit-events', {
      headers: { accept: 'application/x-ndjson' },
      address: newAddress(),
    });

  it.each<[string, () => Promise<Answer>]>([
    ['the audit search by e-mail', () => orgApi(admin, 'GET', '/audit-events?email=a@b.example')],
    ['the export of the audit log', exported],
    ['the list of members', () => orgApi(admin, 'GET', '/members')],
    ['the list of applications', () => admin.get('/api/v1/applications')],
    ['a list of users', () => organization.scim('GET', '/Users')],
    ['a filter without an index', search('/Users', 'title sw "a"')],
    ['a filter by externalId', search('/Users', 'externalId eq "a"')],
    ['a filter of groups by member', search('/Groups', 'members.value eq "a"')],
    ['the members of a group', () => organization.scim('GET', `/Groups/${groupId}`)],
  ])('10.2 %s is costly work of its organization', async (_, ask) => {
    const work = vi.spyOn(app.nest.get(TenantWork), 'costly');
    expect((await ask()).status).toBe(200);
    expect(new Set(work.mock.calls.map(([tenant]) => tenant))).toEqual(new Set([orgId]));
    work.mockRestore();
  });

  it.each<[string, () => Promise<Answer>]>([
    ['a look-up by id', () => organization.scim('GET', `/Users/${userId}`)],
    ['a look-up by userName', search('/Users', 'userName eq "u@large.example"')],
    ['a look-up by displayName', search('/Groups', 'displayName eq "nobody"')],
    ['a bulk operation', () => bulk('DELETE', '/Users/none')],
    ['a change of a user', () => organization.scim('PATCH', `/Users/${userId}`, TITLE)],
    ['a removal of a user', () => organization.scim('DELETE', `/Users/${userId}`)],
  ])('10.2 %s takes no more than a share of the main pool', async (_, ask) => {
    const tenantWork = app.nest.get(TenantWork);
    const work = [vi.spyOn(tenantWork, 'bounded'), vi.spyOn(tenantWork, 'transact')];
    const reads = vi.spyOn(tenantWork, 'costly');
    expect((await ask()).status).toBeLessThan(300);
    const tenants = work.flatMap(({ mock }) => mock.calls.map(([tenant]) => tenant));
    expect(new Set(tenants)).toEqual(new Set([orgId]));
    expect(reads).not.toHaveBeenCalled();
    for (const share of work) share.mockRestore();
    reads.mockRestore();
  });

  const TITLE = patchOf({ op: 'replace', path: 'title', value: 'Engineer' });
  const bulk = (method: string, path: string) =>
    organization.scim('POST', '/Bulk', {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
      Operations: [
        { method: 'PATCH', path: `/Users/${userId}`, data: TITLE },
        { method, path },
      ],
    });
});
