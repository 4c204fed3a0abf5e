import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Answer } from '../support/client.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import {
  actsOf,
  CORE_USER,
  ENTERPRISE,
  expectScimError,
  found,
  insertUsers,
  made,
  memberIdsOf,
  patchOf,
  shown,
  withQuery,
} from '../support/scim-requests.js';

const LIST = 'urn:ietf:params:scim:api:messages:2.0:ListResponse';
const BULK = 'urn:ietf:params:scim:api:messages:2.0:BulkRequest';
const SEARCH = 'urn:ietf:params:scim:api:messages:2.0:SearchRequest';

let app: TestApp;
let tenant: ScimTenant;
beforeAll(async () => {
  app = await startTestApp();
  tenant = await addTenant(app);
});
afterAll(() => app.close());

const { address, newUser, newGroup, patch } = actsOf(() => tenant);
const namesIn = (resources: readonly Answer['json'][]) =>
  resources.map(({ userName }) => userName as string);

describe('§3.4.2.2 the examples of filters', () => {
  let people: ScimTenant;
  beforeAll(async () => {
    people = await addTenant(app);
    await made(people, 'Users', {
      userName: 'bjensen',
      name: { familyName: "O'Malley" },
      title: 'Tour Guide',
      userType: 'Employee',
      emails: [{ type: 'work', value: 'bjensen@example.com' }],
    });
    await made(people, 'Users', {
      userName: 'James',
      name: { familyName: 'Smith' },
      userType: 'Intern',
      emails: [{ type: 'home', value: 'james@example.org' }],
      ims: [{ type: 'xmpp', value: 'james@foo.com' }],
    });
    await made(people, 'Users', { userName: 'nobody' });
  });

  it.each([
    ['userName eq "bjensen"', ['bjensen']],
    ['name.familyName co "O\'Malley"', ['bjensen']],
    ['userName sw "J"', ['James']],
    [`${CORE_USER}:userName sw "J"`, ['James']],
    ['title pr', ['bjensen']],
    ['meta.lastModified gt "2011-05-13T04:42:34Z"', ['James', 'bjensen', 'nobody']],
    ['meta.lastModified ge "2011-05-13T04:42:34Z"', ['James', 'bjensen', 'nobody']],
    ['meta.lastModified lt "2011-05-13T04:42:34Z"', []],
    ['meta.lastModified le "2011-05-13T04:42:34Z"', []],
    ['title pr and userType eq "Employee"', ['bjensen']],
    ['title pr or userType eq "Intern"', ['James', 'bjensen']],
    [`schemas eq "${ENTERPRISE}"`, []],
    [`schemas eq "${CORE_USER}"`, ['James', 'bjensen', 'nobody']],
    [
      'userType eq "Employee" and (emails co "example.com" or emails.value co "example.org")',
      ['bjensen'],
    ],
    [
      'userType ne "Employee" and not (emails co "example.com" or emails.value co "example.org")',
      ['nobody'],
    ],
    ['userType eq "Employee" and (emails.type eq "work")', ['bjensen']],
    ['userType eq "Employee" and emails[type eq "work" and value co "@example.com"]', ['bjensen']],
    [
      'emails[type eq "work" and value co "@example.com"] or ims[type eq "xmpp" and value co "@foo.com"]',
      ['James', 'bjensen'],
    ],
    ['userName ew "sen"', ['bjensen']],
    ['title eq null', ['James', 'nobody']],
    ['not (title pr)', ['James', 'nobody']],
    ['title pr or userType eq "Intern" and userName eq "bjensen"', ['bjensen']],
  ])('%s', async (filter, userNames) => {
    expect(namesIn(await found(people, 'Users', filter)).toSorted()).toEqual(userNames);
  });

  it.each([
    'userName',
    'userName eq',
    'userName eq bjensen',
    'userName xx "a"',
    'nothing eq "a"',
    'userName eq "a" and',
    '(userName eq "a"',
    'userName eq "a")',
    'not userName eq "a"',
    'emails[type eq "work"',
    'userName eq "a',
    'active gt true',
    'userName eq 1',
    'password eq "a"',
    'meta.created gt "yesterday"',
    'userName[value eq "a"]',
    '',
  ])('§3.12 invalidFilter: %j', async (filter) => {
    expectScimError(
      await people.send('GET', withQuery('/Users', { filter })),
      400,
      'invalidFilter',
    );
    const search = { schemas: [SEARCH], filter };
    expectScimError(await people.send('POST', '/Users/.search', search), 400, 'invalidFilter');
  });
});

describe('§3.5.2 the examples of PATCH', () => {
  it('§3.5.2.1 adds a member to a group', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const group = await newGroup(a.id);
    const value = [{ display: 'Babs Jensen', $ref: `../Users/${b.id}`, value: b.id }];
    const answer = await patch(`/Groups/${group.id}`, { op: 'add', path: 'members', value });
    expect([answer.status, memberIdsOf(answer.json)]).toEqual([200, [a.id, b.id].toSorted()]);
    const again = await patch(`/Groups/${group.id}`, { op: 'add', path: 'members', value });
    expect([again.status, memberIdsOf(again.json)]).toEqual([200, [a.id, b.id].toSorted()]);
  });

  it('§3.5.2.1 adds several attributes without a path', async () => {
    const { id } = await newUser({ emails: [{ value: 'first@x.example', type: 'work' }] });
    const value = {
      emails: [{ value: 'babs@jensen.org', type: 'home' }],
      nickName: 'Babs',
    };
    const { status, json } = await patch(`/Users/${id}`, { op: 'add', value });
    expect([status, json.nickName]).toEqual([200, 'Babs']);
    expect(json.emails).toEqual([{ value: 'first@x.example', type: 'work' }, ...value.emails]);
  });

  it('§3.5.2.2 removes one member, all members, and one value of a complex attribute', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const group = await newGroup(a.id, b.id);
    const path = `members[value eq "${a.id}"]`;
    const one = await patch(`/Groups/${group.id}`, { op: 'remove', path });
    expect(memberIdsOf(one.json)).toEqual([b.id]);
    const all = await patch(`/Groups/${group.id}`, { op: 'remove', path: 'members' });
    expect(memberIdsOf(all.json)).toEqual([]);

    const { id } = await newUser({
      emails: [
        { type: 'work', value: 'a@example.com' },
        { type: 'work', value: 'a@example.org' },
      ],
    });
    const { json } = await patch(`/Users/${id}`, {
      op: 'remove',
      path: 'emails[type eq "work" and value ew "example.com"]',
    });
    expect(json.emails).toEqual([{ type: 'work', value: 'a@example.org' }]);
  });

  it('§3.5.2.2 removes one member and adds another in one request', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const group = await newGroup(a.id);
    const { json } = await patch(
      `/Groups/${group.id}`,
      { op: 'remove', path: `members[value eq "${a.id}"]` },
      { op: 'add', path: 'members', value: [{ value: b.id }] },
    );
    expect(memberIdsOf(json)).toEqual([b.id]);
  });

  it('§3.5.2.2 remove without a path is noTarget', async () => {
    const { id } = await newUser();
    expectScimError(await patch(`/Users/${id}`, { op: 'remove' }), 400, 'noTarget');
  });

  it('§3.5.2.3 replaces all members', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const group = await newGroup(a.id);
    const value = [{ display: 'Babs', value: b.id }];
    const { json } = await patch(`/Groups/${group.id}`, { op: 'replace', path: 'members', value });
    expect(memberIdsOf(json)).toEqual([b.id]);
  });

  it('§3.5.2.3 replaces a work address, a sub-attribute of it, and several attributes', async () => {
    const { id } = await newUser({
      addresses: [
        { type: 'work', streetAddress: 'Old Street', locality: 'Kept?', primary: true },
        { type: 'home', streetAddress: 'Home Street' },
      ],
    });
    const work = {
      type: 'work',
      streetAddress: '911 Universal City Plaza',
      locality: 'Hollywood',
      region: 'CA',
      postalCode: '91608',
      country: 'US',
      formatted: '911 Universal City Plaza\nHollywood, CA 91608 US',
      primary: true,
    };
    const home = { type: 'home', streetAddress: 'Home Street' };
    const whole = await patch(`/Users/${id}`, {
      op: 'replace',
      path: 'addresses[type eq "work"]',
      value: work,
    });
    expect(whole.json.addresses).toEqual([work, home]);
    const part = await patch(`/Users/${id}`, {
      op: 'replace',
      path: 'addresses[type eq "work"].streetAddress',
      value: '1010 Broadway Ave',
    });
    expect(part.json.addresses).toEqual([{ ...work, streetAddress: '1010 Broadway Ave' }, home]);
    const value = {
      emails: [{ value: 'bjensen@example.com', type: 'work', primary: true }],
      nickName: 'Babs',
    };
    const several = await patch(`/Users/${id}`, { op: 'replace', value });
    expect(several.json).toMatchObject(value);
  });

  it('§3.5.2.3 a replace of a whole value whose filter matches nothing is noTarget', async () => {
    const { id } = await newUser();
    const path = 'addresses[type eq "work"]';
    const operation = { op: 'replace', path, value: { country: 'US' } };
    expectScimError(await patch(`/Users/${id}`, operation), 400, 'noTarget');
  });

  it.each<[string, unknown, string]>([
    ['no operations', {}, 'invalidSyntax'],
    ['an empty list', { Operations: [] }, 'invalidSyntax'],
    ['an unknown op', { Operations: [{ op: 'move', path: 'title' }] }, 'invalidSyntax'],
    ['no op', { Operations: [{ path: 'title', value: 'x' }] }, 'invalidSyntax'],
    ['a path that is none', { Operations: [{ op: 'add', path: 'a b', value: 1 }] }, 'invalidPath'],
    [
      'a filter that is none',
      { Operations: [{ op: 'add', path: 'emails[type]', value: 1 }] },
      'invalidFilter',
    ],
  ])('§3.12 refuses %s', async (_, body, scimType) => {
    const { id } = await newUser();
    expectScimError(await tenant.send('PATCH', `/Users/${id}`, body), 400, scimType);
  });
});

describe('§3.7 bulk', () => {
  const bulk = (operations: readonly object[], more: object = {}) =>
    tenant.send('POST', '/Bulk', { schemas: [BULK], Operations: operations, ...more });
  const statusesOf = ({ json }: Answer) =>
    (json.Operations as { status: string }[]).map(({ status }) => status);
  const post = (bulkId: string, data: object = { userName: address() }) => ({
    method: 'POST',
    path: '/Users',
    bulkId,
    data,
  });

  it('§3.7 creates, replaces, patches and deletes in one request', async () => {
    const [a, b, c] = await Promise.all([newUser(), newUser(), newUser()]);
    const answer = await bulk([
      post('qwerty'),
      { method: 'PUT', path: `/Users/${a.id}`, version: a.meta.version, data: { title: 'new' } },
      {
        method: 'PATCH',
        path: `/Users/${b.id}`,
        version: b.meta.version,
        data: patchOf({ op: 'replace', path: 'title', value: 'patched' }),
      },
      { method: 'DELETE', path: `/Users/${c.id}`, version: c.meta.version },
    ]);
    expect(answer.status).toBe(200);
    expect(answer.json.schemas).toEqual(['urn:ietf:params:scim:api:messages:2.0:BulkResponse']);
    const [created, ...others] = answer.json.Operations;
    const at = (id: string) => `${app.baseUrl}/scim/v2/Users/${id}`;
    expect(created).toEqual({
      method: 'POST',
      bulkId: 'qwerty',
      location: expect.stringContaining(at('')),
      version: 'W/"1"',
      status: '201',
    });
    expect(others).toEqual([
      { method: 'PUT', location: at(a.id), version: 'W/"2"', status: '200' },
      { method: 'PATCH', location: at(b.id), version: 'W/"2"', status: '200' },
      { method: 'DELETE', location: at(c.id), status: '204' },
    ]);
    expect((await shown(tenant, 'Users', a.id)).title).toBe('new');
    expect((await shown(tenant, 'Users', b.id)).title).toBe('patched');
    expectScimError(await tenant.send('GET', `/Users/${c.id}`), 404);
  });

  it('§3.7.2 resolves bulkId references, also to later operations, in data and in paths', async () => {
    const displayName = randomUUID();
    const group = { displayName, members: [{ type: 'User', value: 'bulkId:qwerty' }] };
    const answer = await bulk([
      { method: 'POST', path: '/Groups', bulkId: 'ytrewq', data: group },
      post('qwerty'),
      {
        method: 'PATCH',
        path: '/Users/bulkId:qwerty',
        data: patchOf({ op: 'add', path: 'manager', value: 'bulkId:boss' }),
      },
      post('boss'),
    ]);
    expect(statusesOf(answer)).toEqual(['201', '201', '200', '201']);
    const [user, boss] = [1, 3].map((n) => answer.json.Operations[n].location.split('/').at(-1));
    const [made_] = await found(tenant, 'Groups', `displayName eq "${displayName}"`);
    expect(memberIdsOf(made_)).toEqual([user]);
    expect((await shown(tenant, 'Users', user))[ENTERPRISE].manager.value).toBe(boss);
  });

  it('§3.7.2 resolves members and managers at every accepted place', async () => {
    const group = await newGroup();
    const answer = await bulk([
      post('m'),
      post('r', { userName: address(), [ENTERPRISE]: { manager: { value: 'bulkId:m' } } }),
      {
        method: 'PATCH',
        path: `/Groups/${group.id}`,
        data: patchOf(
          { op: 'add', path: 'members', value: [{ value: 'bulkId:m' }] },
          { op: 'add', value: { Members: ['bulkId:r'] } },
        ),
      },
    ]);
    expect(statusesOf(answer)).toEqual(['201', '201', '200']);
    const [manager, report] = [0, 1].map((n) =>
      answer.json.Operations[n].location.split('/').at(-1),
    );
    const members = memberIdsOf(await shown(tenant, 'Groups', group.id));
    expect(members).toEqual([manager, report].toSorted());
    expect((await shown(tenant, 'Users', report))[ENTERPRISE].manager.value).toBe(manager);
  });

  it('§3.7.2 does not change text that only resembles a reference', async () => {
    const userName = address();
    const more = { displayName: 'bulkId:zz', emails: [{ value: userName, display: 'bulkId:a' }] };
    const { id } = await newGroup();
    const operations = [
      post('a', { userName, ...more }),
      {
        method: 'PATCH',
        path: `/Groups/${id}`,
        data: patchOf({ op: 'replace', path: 'displayName', value: 'bulkId:a' }),
      },
    ];
    expect(statusesOf(await bulk(operations))).toEqual(['201', '200']);
    expect((await found(tenant, 'Users', `userName eq "${userName}"`))[0]).toMatchObject(more);
    expect((await shown(tenant, 'Groups', id)).displayName).toBe('bulkId:a');
  });

  it('§3.7 refuses an operation whose version is not text, and continues', async () => {
    const { id } = await newUser();
    const data = patchOf({ op: 'replace', path: 'title', value: 'x' });
    const operation = (version: unknown) => ({
      method: 'PATCH',
      path: `/Users/${id}`,
      version,
      data,
    });
    const answer = await bulk([99, ['x'], {}, 'W/"old"', null].map(operation));
    expect(statusesOf(answer)).toEqual(['400', '400', '400', '412', '200']);
  });

  it('§3.7.1 refuses circular references, and references to missing resources', async () => {
    const group = (bulkId: string, reference: string) => ({
      method: 'POST',
      path: '/Groups',
      bulkId,
      data: { displayName: randomUUID(), members: [{ value: `bulkId:${reference}` }] },
    });
    const circle = await bulk([group('a', 'b'), group('b', 'a'), post('c')]);
    expect(statusesOf(circle)).toEqual(['400', '400', '201']);
    const nothing = await bulk([group('a', 'never')]);
    expect(nothing.json.Operations[0]).toMatchObject({
      status: '400',
      response: { status: '400', scimType: 'invalidValue' },
    });
    const failed = await bulk([post('x', { title: 'nameless' }), group('y', 'x')]);
    expect(statusesOf(failed)).toEqual(['400', '400']);
  });

  it('§3.7.3 continues after errors, and reports each at its operation', async () => {
    const taken = await newUser();
    const answer = await bulk([
      post('a', { userName: taken.userName }),
      post('b', {}),
      { method: 'DELETE', path: `/Users/${randomUUID()}` },
      { method: 'PUT', path: `/Users/${taken.id}`, version: 'W/"7"', data: {} },
      { method: 'GET', path: `/Users/${taken.id}` },
      { method: 'POST', path: '/Nothing', bulkId: 'c', data: {} },
      { method: 'POST', path: `/Users/${taken.id}`, bulkId: 'd', data: {} },
      { method: 'DELETE', path: '/Users' },
      {},
      post('e'),
    ]);
    expect(answer.status).toBe(200);
    expect(statusesOf(answer)).toEqual([
      '409',
      '400',
      '404',
      '412',
      '400',
      '400',
      '400',
      '400',
      '400',
      '201',
    ]);
    expect(answer.json.Operations[0]).toEqual({
      method: 'POST',
      bulkId: 'a',
      status: '409',
      response: {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
        status: '409',
        scimType: 'uniqueness',
        detail: expect.any(String),
      },
    });
  });

  it('§3.7.3 stops after failOnErrors, and keeps the completed operations', async () => {
    const bad = { method: 'DELETE', path: `/Users/${randomUUID()}` };
    const userName = address();
    const operations = [post('a', { userName }), bad, bad, post('b')];
    expect(statusesOf(await bulk(operations, { failOnErrors: 2 }))).toEqual(['201', '404', '404']);
    expect(await found(tenant, 'Users', `userName eq "${userName}"`)).toHaveLength(1);
    expect(statusesOf(await bulk([bad, post('c')], { failOnErrors: 1 }))).toEqual(['404']);
    for (const failOnErrors of [0, -1, '1', 1.5, {}]) {
      expectScimError(await bulk([post('d')], { failOnErrors }), 400, 'invalidSyntax');
    }
  });

  it('§3.7.3 disables a user through the same path as PATCH', async () => {
    const { id } = await newUser();
    const data = patchOf({ op: 'Replace', path: 'active', value: 'False' });
    expect(statusesOf(await bulk([{ method: 'PATCH', path: `/Users/${id}`, data }]))).toEqual([
      '200',
    ]);
    expect((await shown(tenant, 'Users', id)).active).toBe(false);
  });

  it('§3.7.4 accepts 1,000 operations, and answers 413 to one more', async () => {
    const operation = { method: 'X', path: '/' };
    const most = await bulk(Array.from({ length: 1000 }, () => operation));
    expect([most.status, most.json.Operations.length]).toEqual([200, 1000]);
    expectScimError(await bulk(Array.from({ length: 1001 }, () => operation)), 413);
  });

  it.each([
    {},
    { Operations: {} },
    { Operations: null },
    [],
    { Operations: [], operations: [] },
    { Operations: [{ method: 'DELETE', path: '/Users/a', Path: '/Users/b' }] },
  ])('§3.12 refuses the body %j', async (body) => {
    expectScimError(await tenant.send('POST', '/Bulk', body), 400, 'invalidSyntax');
  });
});

describe('§3.4 lists', () => {
  let sorted: ScimTenant;
  beforeAll(async () => {
    sorted = await addTenant(app);
    const people = [
      {
        userName: 'carol',
        title: 'b',
        name: { familyName: 'Zed' },
        emails: [{ value: 'a@x.example' }, { value: 'z@x.example', primary: true }],
      },
      { userName: 'Bob', title: 'B', emails: [{ value: 'b@x.example' }] },
      { userName: 'alice', name: { familyName: 'abe' } },
    ];
    for (const person of people) await made(sorted, 'Users', person);
    await made(sorted, 'Groups', { displayName: 'admins' });
  });
  const list = async (fields: Record<string, string | number>) =>
    (await sorted.send('GET', withQuery('/Users', fields))).json;

  it('§3.4.2.3 sorts by the primary value, ignores case, and puts users without a value last, or first when descending', async () => {
    const by = async (sortBy: string, sortOrder = 'ascending') =>
      namesIn((await list({ sortBy, sortOrder })).Resources);
    expect(await by('userName')).toEqual(['alice', 'Bob', 'carol']);
    expect(await by('userName', 'descending')).toEqual(['carol', 'Bob', 'alice']);
    expect(await by('name.familyName')).toEqual(['alice', 'carol', 'Bob']);
    expect(await by('name.familyName', 'descending')).toEqual(['Bob', 'carol', 'alice']);
    expect(await by('emails.value')).toEqual(['Bob', 'carol', 'alice']);
    expect(await by('emails')).toEqual(['Bob', 'carol', 'alice']);
    expect(await by('meta.created')).toEqual(['carol', 'Bob', 'alice']);
    expect((await by('title')).at(-1)).toBe('alice');
    const unordered = ['name', 'groups', 'nothing', 'meta', 'password', 'manager.displayName'];
    for (const sortBy of unordered) {
      const answer = await sorted.send('GET', withQuery('/Users', { sortBy }));
      expect([sortBy, answer.status]).toEqual([sortBy, 400]);
    }
  });

  it('§3.4.2 filters and sorts by every attribute of /Schemas, or states why not', async () => {
    const { json } = await sorted.send('GET', '/Schemas');
    interface Named {
      readonly name: string;
      readonly subAttributes?: readonly Named[];
    }
    const schemas = json.Resources as { id: string; name: string; attributes: Named[] }[];
    let accepted = 0;
    for (const { id, name, attributes } of schemas.slice(0, 3)) {
      const paths = attributes.flatMap(({ name: root, subAttributes = [] }) => [
        `${id}:${root}`,
        ...subAttributes.map((sub) => `${id}:${root}.${sub.name}`),
      ]);
      const type = name === 'Group' ? 'Groups' : 'Users';
      for (const path of paths) {
        for (const [query, scimTypes] of [
          [{ filter: `${path} pr` }, ['invalidFilter']],
          [{ filter: `not (${path} eq "true")` }, ['invalidFilter']],
          [{ filter: `${path} co "t" or ${path} gt "a"` }, ['invalidFilter']],
          [{ sortBy: path }, ['invalidValue']],
          [{ sortBy: path, sortOrder: 'descending', cursor: '', count: 1 }, ['invalidValue']],
        ] as const) {
          const answer = await sorted.send('GET', withQuery(`/${type}`, { ...query }));
          if (answer.status === 200) accepted += 1;
          else expect([path, scimTypes]).toEqual([path, [answer.json.scimType]]);
        }
      }
    }
    expect(accepted).toBeGreaterThan(200);
  });

  it('§3.4.2.4 pages by index; count=0 only counts, and smaller numbers become 1 or 0', async () => {
    expect(await list({ count: 2 })).toMatchObject({
      schemas: [LIST],
      totalResults: 3,
      itemsPerPage: 2,
      startIndex: 1,
    });
    const last = await list({ startIndex: 3, count: 2 });
    expect([last.totalResults, last.itemsPerPage, last.startIndex]).toEqual([3, 1, 3]);
    for (const count of [0, -5]) {
      expect(await list({ count })).toMatchObject({
        totalResults: 3,
        itemsPerPage: 0,
        Resources: [],
      });
    }
    for (const startIndex of [0, -5]) {
      expect(await list({ startIndex })).toMatchObject({ startIndex: 1, itemsPerPage: 3 });
    }
  });

  it('§3.4.2.1 and §3.4.3 search users and groups at once', async () => {
    const types = ({ json }: Answer) =>
      (json.Resources as { meta: { resourceType: string } }[]).map(({ meta }) => meta.resourceType);
    const all = await sorted.send('GET', '?count=10');
    expect([all.json.totalResults, types(all)]).toEqual([4, ['User', 'User', 'User', 'Group']]);
    const search = { schemas: [SEARCH], startIndex: 3, count: 2 };
    const page = await sorted.send('POST', '/.search', search);
    expect([page.json.totalResults, page.json.itemsPerPage, types(page)]).toEqual([
      4,
      2,
      ['User', 'Group'],
    ]);
    const byName = { filter: 'displayName sw "adm" or userName eq "alice"', sortBy: 'userName' };
    expect(types(await sorted.send('POST', '/.search', byName))).toEqual(['User', 'Group']);
    const descending = { ...byName, sortOrder: 'descending' };
    expect(types(await sorted.send('POST', '/.search', descending))).toEqual(['User', 'Group']);
    const absent = { filter: 'userName ne "alice" and not (members pr)' };
    const others = await sorted.send('POST', '/.search', absent);
    expect(types(others)).toEqual(['User', 'User', 'Group']);
    const unknown = { filter: 'displayName sw "adm" or colour eq "blue"' };
    expectScimError(await sorted.send('POST', '/.search', unknown), 400, 'invalidFilter');
    const typed = { schemas: [SEARCH], filter: 'meta.resourceType eq "Group"' };
    expect(types(await sorted.send('POST', '/.search', typed))).toEqual(['Group']);
  });

  it('§3.4.3 searches with POST as with GET', async () => {
    const answer = await sorted.send('POST', '/Users/.search', {
      schemas: [SEARCH],
      attributes: ['displayName', 'userName'],
      filter: 'userName sw "a" or userName sw "b"',
      sortBy: 'userName',
      sortOrder: 'descending',
      startIndex: 1,
      count: 10,
    });
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({
      schemas: [LIST],
      totalResults: 2,
      itemsPerPage: 2,
      startIndex: 1,
      Resources: ['Bob', 'alice'].map((userName) => ({
        schemas: [CORE_USER],
        id: expect.any(String),
        userName,
      })),
    });
    const groups = { schemas: [SEARCH], filter: 'displayName eq "ADMINS"' };
    expect((await sorted.send('POST', '/Groups/.search', groups)).json.totalResults).toBe(1);
  });

  it('§3.4.3 refuses a search without a body, or with a list for one', async () => {
    for (const path of ['/.search', '/Users/.search', '/Groups/.search']) {
      expectScimError(await tenant.send('POST', path), 400, 'invalidSyntax');
      expectScimError(await tenant.send('POST', path, []), 400, 'invalidSyntax');
    }
  });

  it('§3.9 shows the requested attributes, and omits excluded ones', async () => {
    const user = await newUser({
      name: { givenName: 'A', familyName: 'B' },
      emails: [{ type: 'work', value: 'a@x.example' }],
      [ENTERPRISE]: { department: 'd', division: 'v' },
    });
    const of = async (query: string) =>
      (await tenant.send('GET', `/Users/${user.id}?${query}`)).json;
    const always = { schemas: user.schemas, id: user.id };
    expect(await of('attributes=USERNAME')).toEqual({ ...always, userName: user.userName });
    expect(await of('attributes=name.givenName,emails.value')).toEqual({
      ...always,
      name: { givenName: 'A' },
      emails: [{ value: 'a@x.example' }],
    });
    expect(await of(`attributes=${ENTERPRISE}:department`)).toEqual({
      ...always,
      [ENTERPRISE]: { department: 'd' },
    });
    expect(await of(`attributes=${ENTERPRISE}`)).toEqual({
      ...always,
      [ENTERPRISE]: user[ENTERPRISE],
    });
    expect(await of('attributes=nothing')).toEqual(always);
    expect(await of('attributes=password')).toEqual(always);
    const { name: _, emails: __, ...rest } = user;
    expect(await of('excludedAttributes=name,emails,id')).toEqual(rest);
    const both = await tenant.send(
      'GET',
      `/Users/${user.id}?attributes=id&excludedAttributes=name`,
    );
    expectScimError(both, 400, 'invalidValue');
    const created = await tenant.send('POST', '/Users?attributes=id', { userName: address() });
    expect([created.status, Object.keys(created.json)]).toEqual([201, ['schemas', 'id']]);
  });

  it('§3.9 choose the parts of members that a group shows', async () => {
    const [one, two] = [await newUser(), await newUser()];
    const [value, other] = [one.id, two.id].toSorted();
    const group = await newGroup(value, other);
    const $ref = (id: string) => `${app.baseUrl}/scim/v2/Users/${id}`;
    const each = (part: (id: string) => object) => [part(value), part(other)];
    for (const [query, members] of [
      ['attributes=members.value', each((id) => ({ value: id }))],
      ['attributes=Members.$ref,members.TYPE', each((id) => ({ $ref: $ref(id), type: 'User' }))],
      [
        'excludedAttributes=members.display',
        each((id) => ({ value: id, $ref: $ref(id), type: 'User' })),
      ],
      ['excludedAttributes=members.value,members.$ref,members.display,members.type', undefined],
      ['attributes=members.colour', undefined],
    ] as const) {
      const { json } = await tenant.send('GET', `/Groups/${group.id}?${query}`);
      expect([query, json.members]).toEqual([query, members]);
      const filter = new URLSearchParams({ filter: `id eq "${group.id}"` }).toString();
      const listed = await tenant.send('GET', `/Groups?${filter}&${query}`);
      expect(listed.json.Resources).toEqual([json]);
    }
    const all = await tenant.send('GET', `/Groups/${group.id}?attributes=members`);
    expect(all.json.members).toEqual((await shown(tenant, 'Groups', group.id)).members);
    const patched = await tenant.send(
      'PATCH',
      `/Groups/${group.id}?attributes=members.value`,
      patchOf({ op: 'remove', path: `members[value eq "${other}"]` }),
    );
    expect(patched.json.members).toEqual([{ value }]);
  });
});

describe('§3.14 entity tags', () => {
  it('304 for the current version, 412 for a change of an old version', async () => {
    for (const type of ['Users', 'Groups'] as const) {
      const resource = type === 'Users' ? await newUser() : await newGroup();
      const path = `/${type}/${resource.id}`;
      const first = resource.meta.version as string;
      expect(first).toMatch(/^W\/"/);
      for (const tag of [first, first.slice(2), '*', `"x", ${first}`]) {
        const known = await tenant.send('GET', path, undefined, { 'if-none-match': tag });
        expect([known.status, known.text, known.headers.get('etag')]).toEqual([304, '', first]);
      }
      const operation = { op: 'replace', path: 'displayName', value: randomUUID() };
      const body = patchOf(operation);
      const changed = await tenant.send('PATCH', path, body, { 'if-match': first });
      expect(changed.status).toBe(200);
      expect(changed.headers.get('etag')).not.toBe(first);
      expect(changed.json.meta.version).toBe(changed.headers.get('etag'));
      const fresh = await tenant.send('GET', path, undefined, { 'if-none-match': first });
      expect(fresh.status).toBe(200);

      const stale = { 'if-match': first };
      expectScimError(await tenant.send('PATCH', path, body, stale), 412);
      const whole = { userName: resource.userName, displayName: randomUUID() };
      expectScimError(await tenant.send('PUT', path, whole, stale), 412);
      expectScimError(await tenant.send('DELETE', path, undefined, stale), 412);
      expect((await shown(tenant, type, resource.id)).meta.version).toBe(changed.json.meta.version);
      const current = { 'if-match': changed.json.meta.version as string };
      expect((await tenant.send('DELETE', path, undefined, current)).status).toBe(204);
    }
  });
});

describe('RFC 9110 §9.3.2 HEAD', () => {
  it('is answered like GET without the body, for every If-None-Match (§13.1.2)', async () => {
    for (const type of ['Users', 'Groups'] as const) {
      const resource = type === 'Users' ? await newUser() : await newGroup();
      const version = resource.meta.version as string;
      for (const [tag, status] of [
        ['', 200],
        ['W/"0"', 200],
        [version, 304],
        [version.slice(2), 304],
        ['*', 304],
      ] as const) {
        const [get, head] = await Promise.all(
          ['GET', 'HEAD'].map((method) =>
            tenant.send(method, `/${type}/${resource.id}`, undefined, { 'if-none-match': tag }),
          ),
        );
        expect([tag, get?.status, head?.status]).toEqual([tag, status, status]);
        for (const name of ['etag', 'content-type', 'location']) {
          expect([name, head?.headers.get(name)]).toEqual([name, get?.headers.get(name)]);
        }
        expect([head?.headers.get('etag'), head?.text]).toEqual([version, '']);
      }
    }
  });

  it('does not apply to a write: its response shows the new version', async () => {
    const { id } = await newUser();
    const body = patchOf({ op: 'replace', path: 'displayName', value: randomUUID() });
    const answer = await tenant.send('PATCH', `/Users/${id}`, body, { 'if-none-match': '*' });
    expect([answer.status, answer.json.id]).toEqual([200, id]);
  });
});

describe('§4 discovery', () => {
  it('/ServiceProviderConfig lists the supported features', async () => {
    const { status, json } = await tenant.send('GET', '/ServiceProviderConfig');
    expect(status).toBe(200);
    expect(json).toMatchObject({
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
      patch: { supported: true },
      bulk: { supported: true, maxOperations: 1000, maxPayloadSize: 65_536 },
      filter: { supported: true, maxResults: 1000 },
      changePassword: { supported: false },
      sort: { supported: true },
      etag: { supported: true },
      pagination: { cursor: true, index: true, defaultPaginationMethod: 'index' },
      authenticationSchemes: [{ type: 'oauthbearertoken' }],
    });
  });

  it('/ResourceTypes and /Schemas list the documents at their own addresses', async () => {
    for (const path of ['/ResourceTypes', '/Schemas']) {
      const { json } = await tenant.send('GET', path);
      expect(json).toMatchObject({ schemas: [LIST], totalResults: json.Resources.length });
      for (const one of json.Resources as { id: string; meta: { location: string } }[]) {
        expect(one.meta.location).toBe(`${app.baseUrl}/scim/v2${path}/${one.id}`);
        expect((await tenant.send('GET', `${path}/${one.id}`)).json).toEqual(one);
      }
    }
  });

  it('every attribute of a user or a group is one of /Schemas', async () => {
    const { json } = await tenant.send('GET', `/Schemas/${CORE_USER}`);
    const known = (json.attributes as { name: string }[]).map(({ name }) => name);
    const group = await newGroup();
    const user = await newUser({ displayName: 'x', emails: [{ value: 'a@x.example' }] });
    await patch(`/Groups/${group.id}`, { op: 'add', path: 'members', value: [{ value: user.id }] });
    const common = ['schemas', 'id', 'meta'];
    const shownNames = Object.keys(await shown(tenant, 'Users', user.id));
    expect([...known, ...common]).toEqual(expect.arrayContaining(shownNames));
  });
});

describe('§3.11 /Me', () => {
  it('is 501 for every method, since a token does not belong to a user', async () => {
    expectScimError(await tenant.send('GET', '/Me'), 501);
    expect((await tenant.send('HEAD', '/Me')).status).toBe(501);
    for (const body of [{ userName: address() }, patchOf(), 'no JSON']) {
      expectScimError(await tenant.send('POST', '/Me', body), 501);
      expectScimError(await tenant.send('PUT', '/Me', body), 501);
      expectScimError(await tenant.send('PATCH', '/Me', body), 501);
    }
    expectScimError(await tenant.send('DELETE', '/Me'), 501);
  });
});

describe('RFC 9865 cursors', () => {
  let crowd: ScimTenant;
  let ids: string[];
  beforeAll(async () => {
    crowd = await addTenant(app);
    ids = await insertUsers(app, crowd, 25);
  });

  async function walk(fields: Record<string, string | number>): Promise<string[]> {
    const seen: string[] = [];
    let cursor: string | undefined = '';
    while (cursor !== undefined) {
      const path = withQuery('/Users', { ...fields, cursor });
      const { status, json }: Answer = await crowd.send('GET', path);
      expect([status, json.totalResults]).toEqual([200, 25]);
      expect(json.itemsPerPage).toBe(json.Resources.length);
      seen.push(...(json.Resources as { id: string }[]).map(({ id }) => id));
      cursor = json.nextCursor;
    }
    return seen;
  }

  it('§2 reach the end in every order, and the last page has no nextCursor', async () => {
    for (const count of [1, 7, 25, 100]) expect(await walk({ count })).toEqual(ids);
    for (const sortOrder of ['ascending', 'descending']) {
      for (const sortBy of ['userName', 'title', 'meta.created', 'active']) {
        const seen = await walk({ count: 7, sortBy, sortOrder });
        expect(seen.toSorted()).toEqual(ids);
      }
    }
    expect(await walk({ count: 7, filter: 'userName pr' })).toEqual(ids);
  });

  it('§2 work in a search request', async () => {
    const search = { schemas: [SEARCH], cursor: '', count: 20 };
    const { json } = await crowd.send('POST', '/Users/.search', search);
    const rest = await crowd.send('POST', '/Users/.search', { ...search, cursor: json.nextCursor });
    expect([...json.Resources, ...rest.json.Resources]).toHaveLength(25);
    expect(rest.json).not.toHaveProperty('nextCursor');
  });

  it('§2 are short for long values, and survive the deletion of the user at their position', async () => {
    const long = await addTenant(app);
    const beginning = 'x'.repeat(300);
    const titles = [undefined, 'short', `${beginning}b`, `${beginning}a`, '\u{1F511}'.repeat(300)];
    titles.push(...['m', 'n', 'o', 'p'].map((end) => '語'.repeat(16_383) + end));
    const users = new Map<string, string>();
    for (const [n, title] of [...titles, ...titles].entries()) {
      const userName = `${n}-${'語'.repeat(500)}`;
      const { id } = await made(long, 'Users', { userName, ...(title ? { title } : {}) });
      users.set(id as string, userName);
    }
    for (const sortBy of ['title', 'userName']) {
      for (const sortOrder of ['ascending', 'descending']) {
        const seen: string[] = [];
        let cursor: string | undefined = '';
        while (cursor !== undefined) {
          const fields = { sortBy, sortOrder, cursor, count: 3, attributes: 'userName' };
          const { status, json }: Answer = await long.send('GET', withQuery('/Users', fields));
          expect([sortBy, cursor.length, status]).toEqual([sortBy, expect.any(Number), 200]);
          seen.push(...(json.Resources as { id: string }[]).map(({ id }) => id));
          cursor = json.nextCursor as string | undefined;
          expect((cursor ?? '').length).toBeLessThan(2048);
          // Deletes the user at whom the next page begins, which must not disturb the cursor.
          const last = seen.at(-1) ?? '';
          if (cursor !== undefined && seen.length === 6) {
            expect((await long.send('DELETE', `/Users/${last}`)).status).toBe(204);
          }
        }
        expect(seen.toSorted()).toEqual([...users.keys()].toSorted());
        users.delete(seen[5] ?? '');
      }
    }
  });

  it('§2.1 are refused when malformed, or of another search: 400 invalidCursor', async () => {
    const { json } = await crowd.send('GET', '/Users?cursor&count=5');
    const cursor = json.nextCursor as string;
    for (const wrong of ['x', '0', 'bnVsbA', 'e30', cursor.slice(4), '%%%', 'null']) {
      const path = withQuery('/Users', { cursor: wrong });
      expectScimError(await crowd.send('GET', path), 400, 'invalidCursor');
    }
    for (const other of [{ filter: 'active eq true' }, { sortBy: 'userName' }]) {
      const path = withQuery('/Users', { cursor, ...other });
      expectScimError(await crowd.send('GET', path), 400, 'invalidCursor');
    }
    const ofGroups = withQuery('/Groups', { cursor });
    expectScimError(await crowd.send('GET', ofGroups), 400, 'invalidCursor');
    expectScimError(await crowd.send('GET', '?cursor'), 400, 'invalidCursor');
  });

  it('§2.1 are refused when malformed also if the page shows no user', async () => {
    const unique = 'userName eq "nobody"';
    for (const fields of [{ count: 0 }, { count: -1 }, { count: 0, filter: unique }]) {
      const path = withQuery('/Users', { ...fields, cursor: 'zzz' });
      expectScimError(await crowd.send('GET', path), 400, 'invalidCursor');
      const first = await crowd.send('GET', withQuery('/Users', { ...fields, cursor: '' }));
      expect([first.status, first.json.itemsPerPage]).toEqual([200, 0]);
    }
    for (const cursor of [42, {}, ['']]) {
      const search = { schemas: [SEARCH], cursor };
      const answer = await crowd.send('POST', '/Users/.search', search);
      expectScimError(answer, 400, 'invalidCursor');
    }
  });

  it('§2.1 beside a count that is no whole number are 400 invalidCount', async () => {
    for (const count of ['abc', '1.5', '99999999999999999999']) {
      for (const cursor of ['', 'zzz']) {
        for (const path of ['/Users', '/Groups', '']) {
          const answer = await crowd.send('GET', withQuery(path, { cursor, count }));
          expectScimError(answer, 400, 'invalidCount');
        }
      }
      const search = { schemas: [SEARCH], cursor: '', count };
      const answer = await crowd.send('POST', '/Users/.search', search);
      expectScimError(answer, 400, 'invalidCount');
      const byIndex = await crowd.send('GET', withQuery('/Users', { count }));
      expectScimError(byIndex, 400, 'invalidValue');
    }
    const many = await crowd.send('GET', withQuery('/Users', { cursor: '', count: 5000 }));
    expect([many.status, many.json.itemsPerPage]).toEqual([200, 25]);
  });
});
