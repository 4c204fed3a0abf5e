import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Answer } from '../support/client.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import {
  actsOf,
  ENTERPRISE,
  expectScimError,
  found,
  memberIdsOf,
  shown,
} from '../support/scim-requests.js';

let app: TestApp;
let tenant: ScimTenant;
beforeAll(async () => {
  app = await startTestApp();
  tenant = await addTenant(app);
});
afterAll(() => app.close());

const { address, newUser, newGroup } = actsOf(() => tenant);

const BULK = 'urn:ietf:params:scim:api:messages:2.0:BulkRequest';
const bulk = (operations: readonly object[], more: object = {}) =>
  tenant.send('POST', '/Bulk', { schemas: [BULK], Operations: operations, ...more });
const statusesOf = ({ json }: Answer) =>
  (json.Operations as { status: string }[]).map(({ status }) => status);
const idsOf = ({ json }: Answer) =>
  (json.Operations as { location: string }[]).map(({ location }) => location.split('/').at(-1));
const post = (bulkId: unknown, data: object = {}) => ({
  method: 'POST',
  path: '/Users',
  bulkId,
  data: { userName: address(), ...data },
});
type User = Awaited<ReturnType<typeof newUser>>;
/**
 * Returns a bulk operation that creates a user. The manager of that user is created by the
 * operation whose `bulkId` is `manager`.
 */
const report = (bulkId: string, manager: string) =>
  post(bulkId, { [ENTERPRISE]: { manager: { value: `bulkId:${manager}` } } });
const managerOf = async (id: string | undefined) =>
  (await shown(tenant, 'Users', id ?? ''))[ENTERPRISE]?.manager?.value as string | undefined;

describe('10.19 circular references (RFC 7644 §3.7.1)', () => {
  it('10.19 create two users who are each other’s managers, and the groups that refer to them', async () => {
    const displayName = randomUUID();
    const members = [{ value: 'bulkId:a' }, { value: 'bulkId:b' }];
    const answer = await bulk([
      { method: 'POST', path: '/Groups', bulkId: 'g', data: { displayName, members } },
      report('c', 'b'),
      report('a', 'b'),
      report('b', 'a'),
    ]);
    expect(statusesOf(answer)).toEqual(['201', '201', '201', '201']);
    const [g, c, a, b] = idsOf(answer);
    expect(await Promise.all([a, b, c].map(managerOf))).toEqual([b, a, b]);
    expect(memberIdsOf(await shown(tenant, 'Groups', g ?? ''))).toEqual([a, b].toSorted());
  });

  it('10.19 create a user who is their own manager, and a longer circle', async () => {
    const alone = await bulk([report('a', 'a')]);
    expect(statusesOf(alone)).toEqual(['201']);
    expect(await managerOf(idsOf(alone)[0])).toBe(idsOf(alone)[0]);
    const names = Array.from({ length: 20 }, (_, n) => String(n));
    const many = await bulk(names.map((name, n) => report(name, String((n + 7) % 20))));
    expect(new Set(statusesOf(many))).toEqual(new Set(['201']));
    const ids = idsOf(many);
    const managers = await Promise.all(ids.map(managerOf));
    expect(managers).toEqual(ids.map((_, n) => ids[(n + 7) % 20]));
  });

  it('10.19 report the final version of each user', async () => {
    const { json } = await bulk([report('a', 'b'), report('b', 'a')]);
    for (const { location, version } of json.Operations as Record<string, string>[]) {
      const answer = await tenant.send('GET', `/Users/${location?.split('/').at(-1)}`);
      expect(answer.headers.get('etag')).toBe(version);
    }
  });

  it('10.19 are removed where the other user was not created', async () => {
    const taken = await newUser();
    const refused = {
      ...report('b', 'a'),
      data: { userName: taken.userName, [ENTERPRISE]: { manager: { value: 'bulkId:a' } } },
    };
    const answer = await bulk([report('a', 'b'), refused]);
    expect(statusesOf(answer)).toEqual(['201', '409']);
    const [a] = idsOf({ ...answer, json: { Operations: [answer.json.Operations[0]] } });
    expect(await managerOf(a)).toBeUndefined();
  });

  it('10.19 name the members whom the request takes over, with their own ids', async () => {
    const insertMember = async () => {
      const [id, email] = [randomUUID(), address()];
      const text = 'INSERT INTO users (id, org_id, email) VALUES ($1, $2, $3)';
      await app.dataSource.query(text, [id, tenant.orgId, email]);
      return { id, email };
    };
    const members = await Promise.all([insertMember(), insertMember(), insertMember()]);
    const [first, second, alone] = members;
    const named = (bulkId: string, manager: string, userName: string | undefined) => ({
      ...report(bulkId, manager),
      data: { userName, [ENTERPRISE]: { manager: { value: `bulkId:${manager}` } } },
    });
    const answer = await bulk([
      report('a', 'b'),
      named('b', 'a', first?.email),
      named('c', 'd', second?.email),
      report('d', 'c'),
      named('e', 'e', alone?.email),
    ]);
    expect(statusesOf(answer)).toEqual(['201', '201', '201', '201', '201']);
    const [a, b, c, d, e] = idsOf(answer);
    expect([b, c, e]).toEqual(members.map(({ id }) => id));
    expect(await Promise.all([a, b, c, d, e].map(managerOf))).toEqual([b, a, d, c, e]);
    for (const { location, version } of answer.json.Operations as Record<string, string>[]) {
      const shownNow = await tenant.send('GET', `/Users/${location?.split('/').at(-1)}`);
      expect(shownNow.headers.get('etag')).toBe(version);
    }
  });

  it('10.19 are still refused for groups in groups', async () => {
    const group = (bulkId: string, value: string) => ({
      method: 'POST',
      path: '/Groups',
      bulkId,
      data: { displayName: randomUUID(), members: [{ value: `bulkId:${value}` }] },
    });
    expect(statusesOf(await bulk([group('a', 'b'), group('b', 'a')]))).toEqual(['400', '400']);
  });
});

describe('10.19 the bulkId of a POST', () => {
  it('10.19 is required and unique: any other is 400', async () => {
    const first = address();
    const answer = await bulk([
      post('a', { userName: first }),
      post('a'),
      post(undefined),
      post(''),
      post(null),
      post({}),
      post(7),
      { method: 'DELETE', path: '/Users/bulkId:a' },
      { method: 'DELETE', path: '/Users/bulkId:7' },
    ]);
    const statuses = ['201', '400', '400', '400', '400', '400', '201', '204', '204'];
    expect(statusesOf(answer)).toEqual(statuses);
    expect(answer.json.Operations[1].response.scimType).toBe('invalidValue');
    expect(await found(tenant, 'Users', `userName eq "${first}"`)).toEqual([]);
  });

  it('10.19 counts for failOnErrors when it is invalid', async () => {
    const answer = await bulk([post(undefined), post('b')], { failOnErrors: 1 });
    expect(statusesOf(answer)).toEqual(['400']);
  });
});

describe('10.19 an operation that waits for a later one', () => {
  it('10.19 runs without its reference when failOnErrors stops the run', async () => {
    const [a, b, c, d] = await Promise.all(Array.from({ length: 4 }, () => newUser()));
    const group = await newGroup(a?.id ?? '', b?.id ?? '');
    const manager = { value: 'bulkId:m' };
    const patch = (id: string | undefined, ...data: object[]) => ({
      method: 'PATCH',
      path: `/Users/${id}`,
      data,
    });
    const leave = { op: 'replace', value: { active: false, [ENTERPRISE]: { manager } } };
    const answer = await bulk(
      [
        patch(a?.id, leave),
        {
          method: 'PUT',
          path: `/Users/${b?.id}`,
          data: { userName: b?.userName, active: false, [ENTERPRISE]: { manager } },
        },
        {
          method: 'PATCH',
          path: `/Groups/${group.id}`,
          data: [
            { op: 'remove', path: `members[value eq "${a?.id}"]` },
            { op: 'add', path: 'members', value: [manager] },
          ],
        },
        patch('bulkId:m', leave),
        post('g', { [ENTERPRISE]: { manager } }),
        post('x', { userName: '' }),
        patch(c?.id, leave),
        post('m'),
      ],
      { failOnErrors: 1 },
    );
    expect(statusesOf(answer)).toEqual(['200', '200', '200', '400']);
    const isActive = async (user: typeof a) => (await shown(tenant, 'Users', user?.id)).active;
    expect(await Promise.all([a, b, c, d].map(isActive))).toEqual([false, false, true, true]);
    expect(memberIdsOf(await shown(tenant, 'Groups', group.id))).toEqual([b?.id]);
  });

  it('10.19 runs when a later pass exceeds failOnErrors', async () => {
    const user = await newUser();
    const taken = await newUser();
    const answer = await bulk(
      [
        {
          method: 'PATCH',
          path: `/Users/${user.id}`,
          data: [{ op: 'replace', value: { active: false, manager: 'bulkId:b' } }],
        },
        report('b', 'c'),
        { ...report('x', 'c'), data: { userName: taken.userName, manager: 'bulkId:c' } },
        post('c'),
      ],
      { failOnErrors: 1 },
    );
    expect(statusesOf(answer)).toEqual(['200', '201', '409', '201']);
    expect((await shown(tenant, 'Users', user.id)).active).toBe(false);
    expect(await managerOf(user.id)).toBe(answer.json.Operations[1].location.split('/').at(-1));
  });
});

describe('10.19 a change behind a change of the same resource that waits', () => {
  it('10.19 runs after it, so that the last one decides about the access', async () => {
    const [put, patched, added] = await Promise.all(Array.from({ length: 3 }, () => newUser()));
    const group = await newGroup();
    const manager = { value: 'bulkId:m' };
    const change = (method: string, path: string, data: object) => ({ method, path, data });
    const leaves = [{ op: 'replace', path: 'active', value: 'False' }];
    const returns = { active: true, [ENTERPRISE]: { manager } };
    const add = { op: 'add', path: 'members', value: [{ value: added?.id }, manager] };
    const remove = { op: 'remove', path: `members[value eq "${added?.id}"]` };
    const answer = await bulk([
      change('PUT', `/Users/${put?.id}`, { userName: put?.userName, ...returns }),
      change('PATCH', `/users/${put?.id.toUpperCase()}`, leaves),
      change('PATCH', `/Users/${patched?.id}`, [{ op: 'replace', value: returns }]),
      change('PUT', `/Users/${patched?.id}`, { userName: patched?.userName, active: false }),
      change('PATCH', `/Groups/${group.id}`, [add]),
      change('PATCH', `/Groups/${group.id}`, [remove]),
      post('m'),
    ]);
    expect(statusesOf(answer)).toEqual(['200', '200', '200', '200', '200', '200', '201']);
    const isActive = async (user: typeof put) => (await shown(tenant, 'Users', user?.id)).active;
    expect(await Promise.all([put, patched].map(isActive))).toEqual([false, false]);
    expect(memberIdsOf(await shown(tenant, 'Groups', group.id))).toEqual([idsOf(answer).at(-1)]);
  });

  it('10.19 runs also where the references stay unresolved, and where failOnErrors stops the run', async () => {
    const [a, b, c] = (await Promise.all([1, 2, 3].map(() => newUser()))) as [User, User, User];
    const group = (bulkId: string, member: string) => ({
      method: 'POST',
      path: '/Groups',
      bulkId,
      data: { displayName: randomUUID(), members: [{ value: `bulkId:${member}` }] },
    });
    const changes = (id: string) =>
      [
        { op: 'replace', value: { title: 'x', active: true, manager: 'bulkId:g' } },
        { op: 'replace', path: 'active', value: false },
      ].map((operation) => ({ method: 'PATCH', path: `/Users/${id}`, data: [operation] }));
    const stuck = await bulk([...changes(a.id), group('g', 'h'), group('h', 'g')]);
    expect(statusesOf(stuck)).toEqual(['200', '200', '400', '400']);
    const bad = post('x', { userName: '' });
    const stopped = await bulk([...changes(b.id), bad, post('g')], { failOnErrors: 1 });
    expect(statusesOf(stopped)).toEqual(['200', '200', '400']);
    for (const { id } of [a, b]) {
      expect(await shown(tenant, 'Users', id)).toMatchObject({ title: 'x', active: false });
    }
    const [faulty, leaves] = changes(c.id);
    const title = { ...faulty, data: [{ op: 'add', value: { title: true, manager: 'bulkId:g' } }] };
    const later = await bulk([title, leaves ?? {}, post('g')], { failOnErrors: 1 });
    expect(statusesOf(later)).toEqual(['400', '200', '201']);
    expect((await shown(tenant, 'Users', c.id)).active).toBe(false);
  });
});

describe('10.19 references in the operations of a PATCH', () => {
  const patchGroup = (id: string, ...data: object[]) => ({
    method: 'PATCH',
    path: `/Groups/${id}`,
    data,
  });
  const membersOf = async (id: string) => memberIdsOf(await shown(tenant, 'Groups', id));

  it('10.19 are resolved between the brackets of a path', async () => {
    const stays = await newUser();
    const { id } = await newGroup(stays.id);
    const add = { op: 'add', path: 'members', value: [{ value: 'bulkId:u "1"' }] };
    const path = `Members[type eq "User" and value eq ${JSON.stringify('bulkId:u "1"')}]`;
    const remove = { op: 'remove', path };
    const answer = await bulk([
      patchGroup(id, add),
      patchGroup(id, remove),
      patchGroup(id, { ...remove, path: 'members[value eq "bulkId:v"]' }),
      post('v'),
      post('u "1"'),
    ]);
    expect(statusesOf(answer)).toEqual(['200', '200', '200', '201', '201']);
    expect(await membersOf(id)).toEqual([stays.id]);
    const last = await bulk([post('v'), patchGroup(id, { ...add, value: 'bulkId:v' })]);
    expect(await membersOf(id)).toEqual([stays.id, idsOf(last)[0]].toSorted());
  });

  it('10.19 are 400 between brackets, when nothing was created', async () => {
    const stays = await newUser();
    const leaver = await newUser();
    const { id } = await newGroup(stays.id, leaver.id);
    const path = 'members[value eq "bulkId:none"]';
    const leaves = { op: 'remove', path: `members[value eq "${leaver.id}"]` };
    const answer = await bulk([
      patchGroup(id, { op: 'remove', path }),
      patchGroup(id, { op: 'remove', path }, leaves),
    ]);
    expect(statusesOf(answer)).toEqual(['400', '200']);
    expect(answer.json.Operations[0].response.scimType).toBe('invalidValue');
    expect(await membersOf(id)).toEqual([stays.id]);
  });

  it('10.19 are resolved in a list that is inside an object (E31)', async () => {
    const { id } = await newGroup();
    const answer = await bulk([
      post('u'),
      patchGroup(id, {
        op: 'add',
        path: 'members',
        value: { Members: [{ value: 'bulkId:u' }] },
      }),
    ]);
    expect(statusesOf(answer)).toEqual(['201', '200']);
    expect(await membersOf(id)).toEqual([idsOf(answer)[0]]);
  });
});

describe('10.19 data as a list (RFC 7644 §3.7.3)', () => {
  it('10.19 is accepted as the operations of a PATCH, or as the one resource', async () => {
    const user = await newUser({ nickName: 'gone' });
    const group = await newGroup();
    const userName = address();
    const answer = await bulk([
      { method: 'POST', path: '/Users', bulkId: 'a', data: [{ userName }] },
      {
        method: 'PATCH',
        path: `/Users/${user.id}`,
        data: [
          { op: 'remove', path: 'nickName' },
          { Op: 'add', path: 'manager', value: 'bulkId:a' },
          { op: 'replace', path: 'active', value: 'False' },
        ],
      },
      {
        method: 'PATCH',
        path: `/Groups/${group.id}`,
        data: [{ Operations: [{ op: 'add', path: 'members', value: [{ value: 'bulkId:a' }] }] }],
      },
      { method: 'PUT', path: '/Users/bulkId:a', data: [{ userName, title: 'x' }] },
    ]);
    expect(statusesOf(answer)).toEqual(['201', '200', '200', '200']);
    const [made] = await found(tenant, 'Users', `userName eq "${userName}"`);
    expect(made).toMatchObject({ title: 'x', groups: [{ value: group.id }] });
    const patched = await shown(tenant, 'Users', user.id);
    expect(patched).not.toHaveProperty('nickName');
    expect([patched.active, await managerOf(user.id)]).toEqual([false, made?.id]);
  });

  it('10.19 is 400 when it is malformed', async () => {
    const user = await newUser();
    const lists = [[], [{ title: 'x' }], [1], [{ op: 'replace', path: 'title' }, {}]];
    const answer = await bulk([
      ...lists.map((data) => ({ method: 'PATCH', path: `/Users/${user.id}`, data })),
      { ...post('a'), data: [{ userName: address() }, { userName: address() }] },
    ]);
    expect(new Set(statusesOf(answer))).toEqual(new Set(['400']));
    expectScimError(
      await tenant.send('POST', '/Users', [{ userName: address() }]),
      400,
      'invalidSyntax',
    );
  });
});
