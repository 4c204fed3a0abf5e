import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import {
  actsOf,
  CORE_USER,
  ENTERPRISE,
  expectScimError,
  found,
  insertMembers,
  insertUsers,
  made,
  memberIdsOf,
  patchOf,
  shown,
  withQuery,
} from '../support/scim-requests.js';

let app: TestApp;
let tenant: ScimTenant;
beforeAll(async () => {
  app = await startTestApp();
  tenant = await addTenant(app);
});
afterAll(() => app.close());

const { address, newUser, newGroup, patch } = actsOf(() => tenant);

describe('reading rules', () => {
  it('accepts op, attributes, URNs, sub-attributes, operators and message keys in any case', async () => {
    const { id } = await made(tenant, 'Users', {
      SCHEMAS: [CORE_USER.toUpperCase()],
      USERNAME: address(),
      NAME: { FAMILYNAME: 'One' },
      [ENTERPRISE.toUpperCase()]: { DEPARTMENT: 'sales' },
    });
    const answer = await tenant.send('PATCH', `/Users/${id}`, {
      OPERATIONS: [
        { OP: 'rEpLaCe', PATH: 'NAME.GIVENNAME', VALUE: 'Two' },
        { oP: 'ADD', Path: 'EMAILS[TYPE EQ "WORK"].VALUE', vAlUe: 'three@x.example' },
        { op: 'Add', path: `${ENTERPRISE.toLowerCase()}:COSTCENTER`, value: 'four' },
      ],
    });
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({
      name: { familyName: 'One', givenName: 'Two' },
      emails: [{ type: 'WORK', value: 'three@x.example' }],
      [ENTERPRISE]: { department: 'sales', costCenter: 'four' },
    });
    const filter = `ID EQ "${id}" AND NOT (NAME.FAMILYNAME PR AND TITLE PR) OR 1_`;
    expectScimError(
      await tenant.send('GET', withQuery('/Users', { FILTER: filter })),
      400,
      'invalidFilter',
    );
    const fine = `ID EQ "${id}" AND NOT (NAME.FAMILYNAME EQ "ONE" AND TITLE PR)`;
    const list = await tenant.send('GET', withQuery('/Users', { FILTER: fine, COUNT: 5 }));
    expect(list.json.totalResults).toBe(1);
    const search = { FILTER: fine, STARTINDEX: 1, Attributes: ['USERNAME'] };
    expect((await tenant.send('POST', '/Users/.search', search)).json.totalResults).toBe(1);
  });

  it.each(['TRUE', 'true', 'tRuE', true])('accepts the boolean %j everywhere', async (yes) => {
    const no = typeof yes === 'string' ? 'fAlSe' : false;
    const user = await newUser({ active: no, emails: [{ value: 'a@x.example', primary: yes }] });
    expect(user).toMatchObject({ active: false, emails: [{ primary: true }] });
    const inPatch = await patch(`/Users/${user.id}`, { op: 'replace', value: { active: yes } });
    expect(inPatch.json.active).toBe(true);
    const body = { userName: user.userName, active: no };
    expect((await tenant.send('PUT', `/Users/${user.id}`, body)).json.active).toBe(false);
    const filter = `id eq "${user.id}" and active eq ${JSON.stringify(no)}`;
    expect(await found(tenant, 'Users', filter)).toHaveLength(1);
  });

  it('converts no other types, except numbers to text', async () => {
    const { id } = await newUser();
    const values: [string, unknown][] = [
      ['active', 1],
      ['active', 0],
      ['active', 'yes'],
      ['active', 'no'],
      ['active', ['false']],
      ['active', {}],
      ['displayName', true],
      ['displayName', ['a']],
      ['displayName', { value: 'a' }],
      ['name', 'a'],
      ['name.givenName', true],
      ['emails', [{ value: true }]],
      ['emails', [{ value: 'a@x.example', primary: 1 }]],
    ];
    for (const [path, value] of values) {
      const aimed = await patch(`/Users/${id}`, { op: 'replace', path, value });
      expectScimError(aimed, 400, 'invalidValue');
      const whole = await patch(`/Users/${id}`, { op: 'replace', value: { [path]: value } });
      expectScimError(whole, 400, 'invalidValue');
      const body = { userName: address(), [path]: value };
      expectScimError(await tenant.send('POST', '/Users', body), 400, 'invalidValue');
      expectScimError(await tenant.send('PUT', `/Users/${id}`, body), 400, 'invalidValue');
    }
    expectScimError(await tenant.send('POST', '/Users', { userName: true }), 400, 'invalidValue');
  });

  it.each<[string, object, object]>([
    ['attr', { path: 'title', value: 'x' }, { title: 'x' }],
    ['attr.sub', { path: 'name.givenName', value: 'x' }, { name: { givenName: 'x' } }],
    [
      'attr[filter]',
      { path: 'emails[type eq "work"]', value: { display: 'x' } },
      { emails: [{ type: 'work', value: 'w@x.example', display: 'x' }] },
    ],
    [
      'attr[filter].sub',
      { path: 'emails[type eq "work"].display', value: 'x' },
      { emails: [{ type: 'work', value: 'w@x.example', display: 'x' }] },
    ],
    [
      'URN:attr',
      { path: `${ENTERPRISE}:division`, value: 'x' },
      { [ENTERPRISE]: { division: 'x' } },
    ],
    [
      'URN:attr.sub',
      { path: `${ENTERPRISE}:manager.value`, value: 'x' },
      { [ENTERPRISE]: { manager: { value: 'x' } } },
    ],
    [
      'a bare URN',
      { path: ENTERPRISE, value: { division: 'x' } },
      { [ENTERPRISE]: { division: 'x' } },
    ],
    [
      'the core URN before an attribute',
      { path: `${CORE_USER}:name.givenName`, value: 'x' },
      { name: { givenName: 'x' } },
    ],
    ['the bare core URN', { path: CORE_USER, value: { title: 'x' } }, { title: 'x' }],
    [
      'no path: nested objects',
      { value: { name: { givenName: 'x' } } },
      { name: { givenName: 'x' } },
    ],
    ['no path: dotted keys', { value: { 'name.givenName': 'x' } }, { name: { givenName: 'x' } }],
    [
      'no path: URN keys',
      { value: { [`${ENTERPRISE}:division`]: 'x', [CORE_USER]: { title: 'y' } } },
      { title: 'y', [ENTERPRISE]: { division: 'x' } },
    ],
    [
      'no path: an extension as an object',
      { value: { [ENTERPRISE]: { division: 'x' } } },
      { [ENTERPRISE]: { division: 'x' } },
    ],
  ])('accepts the path %s', async (_, operation, expected) => {
    const user = await newUser({ emails: [{ type: 'work', value: 'w@x.example' }] });
    const answer = await patch(`/Users/${user.id}`, { op: 'add', ...operation });
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    expect(answer.json).toMatchObject(expected);
  });

  it.each([null, [], ''])(
    'removes an optional attribute by replacing it with %j',
    async (value) => {
      const full = {
        title: 'x',
        name: { givenName: 'x' },
        emails: [{ value: 'a@x.example' }],
        externalId: 'x',
        [ENTERPRISE]: { division: 'x' },
      };
      for (const aimed of [true, false]) {
        const { id } = await newUser(full);
        const paths = ['title', 'name', 'emails', 'externalId', `${ENTERPRISE}:division`];
        const operations = aimed
          ? paths.map((path) => ({ op: 'replace', path, value }))
          : [{ op: 'replace', value: Object.fromEntries(paths.map((path) => [path, value])) }];
        const answer = await patch(`/Users/${id}`, ...operations);
        expect([answer.status, Object.keys(answer.json)]).toEqual([
          200,
          ['schemas', 'id', 'userName', 'active', 'meta'],
        ]);
      }
    },
  );

  it('ignores read-only attributes in whole objects, and refuses an operation on them', async () => {
    const group = await newGroup();
    const readOnly = {
      id: randomUUID(),
      meta: { created: 'never' },
      groups: [{ value: group.id }],
    };
    const user = await newUser(readOnly);
    expect(user.id).not.toBe(readOnly.id);
    expect(user).not.toHaveProperty('groups');
    const body = { ...readOnly, userName: user.userName };
    expect((await tenant.send('PUT', `/Users/${user.id}`, body)).json).toMatchObject({
      id: user.id,
      meta: { created: user.meta.created },
    });
    const whole = await patch(`/Users/${user.id}`, { op: 'replace', value: readOnly });
    expect([whole.status, whole.json.id]).toEqual([200, user.id]);
    for (const path of ['id', 'meta', 'meta.created', 'groups', 'groups.value', 'schemas']) {
      for (const op of ['add', 'replace', 'remove']) {
        const answer = await patch(`/Users/${user.id}`, { op, path, value: 'x' });
        expectScimError(answer, 400, 'mutability');
      }
    }
    const aimed = await patch(`/Groups/${group.id}`, { op: 'replace', path: 'id', value: 'x' });
    expectScimError(aimed, 400, 'mutability');
  });

  it('ignores unknown schemas and attributes', async () => {
    const odd = {
      schemas: ['urn:x:y'],
      'urn:x:y': { a: 1 },
      favouriteColour: 'blue',
      a: { b: [1] },
    };
    const user = await newUser(odd);
    expect(user.schemas).toEqual([CORE_USER]);
    expect(JSON.stringify(user)).not.toMatch(/urn:x|favourite/);
    const answer = await patch(
      `/Users/${user.id}`,
      { op: 'replace', path: 'urn:x:y:colour', value: 'blue' },
      { op: 'replace', value: odd },
      { op: 'replace', value: { 'colours[type eq "x"].value': 'blue' } },
      { op: 'replace', path: 'title', value: 'kept' },
    );
    expect([answer.status, answer.json.title]).toEqual([200, 'kept']);
  });

  it.each<object>([
    { op: 'replace', path: 'active.value', value: false },
    { op: 'replace', path: 'active[value eq "true"]', value: false },
    { op: 'replace', path: 'urn:x:y:active', value: false },
    { op: 'replace', path: 'User.active', value: false },
    { op: 'replace', path: '/active', value: false },
    { op: 'replace', path: ' active false', value: false },
    { op: 'replace', value: { 'active.value': false } },
    { op: 'replace', value: { 'urn:x:y:active': false } },
    { op: 'replace', path: 'active', value: 'disabled' },
    { op: 'replace', path: 'active', value: { value: false } },
    { op: 'replace', value: { active: 'no' } },
    { op: 'replace', value: 'active' },
    { op: 'replace', value: [{ active: false }] },
    { op: 'replace', path: '$active', value: false },
    { op: 'replace', path: 'user', value: { active: false } },
    { op: 'replace', path: 'name', value: { active: false } },
    { op: 'replace', value: { 'urn:ietf:params:scim:schemas:core:1.0:User': { active: false } } },
    { op: 'replace', value: { active: false, Active: true } },
    { op: 'replace', path: 'active', value: true, Value: false },
  ])('refuses %j as a malformed change of active, never with a silent 200', async (operation) => {
    const { id } = await newUser();
    const answer = await patch(`/Users/${id}`, operation);
    expectScimError(answer, 400, expect.stringMatching(/^invalid/));
    expect((await shown(tenant, 'Users', id)).active).toBe(true);
  });

  it.each<object>([
    { op: 'remove', path: 'members[display eq "x"]' },
    { op: 'remove', path: 'members[value co "x"]' },
    { op: 'remove', path: 'members[value eq "x"' },
    { op: 'remove', path: 'members.value' },
    { op: 'remove', path: 'urn:x:y:members' },
    { op: 'remove', path: '/members' },
    { op: 'remove', path: 'members', value: '' },
    { op: 'remove', path: 'members', value: [{ id: 'x' }] },
    { op: 'remove', path: 'members', value: [42] },
    { op: 'add', path: 'members[value eq "x"]', value: { display: 'x' } },
    { op: 'add', path: 'members', value: [{}] },
    { op: 'add', path: 'members', value: [{ value: 42 }] },
    { op: 'add', path: 'members', value: [{ value: randomUUID() }] },
    { op: 'add', path: 'members', value: 'nobody' },
    { op: 'replace', value: { 'members.value': 'x' } },
    { op: 'replace', value: { members: [null] } },
    { op: 'replace', value: { Group: { members: [] } } },
    { op: 'replace', value: { members: [], Members: ['x'] } },
  ])('refuses %j as a malformed change of members, never with a silent 200', async (operation) => {
    const user = await newUser();
    const { id } = await newGroup(user.id);
    const answer = await patch(`/Groups/${id}`, operation);
    expectScimError(answer, 400, expect.stringMatching(/^invalid/));
    expect(memberIdsOf(await shown(tenant, 'Groups', id))).toEqual([user.id]);
  });

  it.each<object>([
    { 'active.value': false },
    { ' active': false },
    { [ENTERPRISE]: { active: false } },
    { [`${ENTERPRISE}:active`]: false },
    { [CORE_USER]: [{ active: false }] },
    { [CORE_USER]: { [CORE_USER]: { active: false } } },
    { 'urn:ietf:params:scim:schemas:core:1.0:User': { active: false } },
    { User: { active: false } },
  ])('refuses a whole user with %j, never with a silent 200 or 201', async (body) => {
    const { id, userName } = await newUser();
    const put = await tenant.send('PUT', `/Users/${id}`, { userName, ...body });
    expectScimError(put, 400, 'invalidValue');
    expect((await shown(tenant, 'Users', id)).active).toBe(true);
    const post = await tenant.send('POST', '/Users', { userName: address(), ...body });
    expectScimError(post, 400, 'invalidValue');
  });

  it('reads the members of a whole group in any spelling, or refuses the group', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const CORE_GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group';
    const { id, displayName } = await newGroup(a.id);
    const put = (body: object) => tenant.send('PUT', `/Groups/${id}`, { displayName, ...body });
    const members = [{ value: b.id }];
    for (const body of [
      { [CORE_GROUP]: { members } },
      { [`${CORE_GROUP}:members`]: members },
      { members: null, Members: members },
    ]) {
      expect(memberIdsOf((await put(body)).json)).toEqual([b.id]);
      expect(memberIdsOf((await put({ members: [{ value: a.id }] })).json)).toEqual([a.id]);
    }
    for (const body of [
      { 'members.value': b.id },
      { members: [], Members: members },
      { Group: { members } },
    ]) {
      expectScimError(await put(body), 400, 'invalidValue');
      const post = { displayName: randomUUID(), ...body };
      expectScimError(await tenant.send('POST', '/Groups', post), 400, 'invalidValue');
    }
    expect(memberIdsOf(await shown(tenant, 'Groups', id))).toEqual([a.id]);
  });

  it('refuses a PATCH that has its Operations twice', async () => {
    const { id } = await newUser();
    const body = {
      ...patchOf({ op: 'replace', path: 'title', value: 'x' }),
      operations: [{ op: 'replace', path: 'active', value: false }],
    };
    expectScimError(await tenant.send('PATCH', `/Users/${id}`, body), 400, 'invalidSyntax');
  });

  it('empties a group by a remove of members without filter and value, and by a PUT without members', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const group = await newGroup(a.id, b.id);
    const removed = await patch(`/Groups/${group.id}`, { op: 'remove', path: 'members' });
    expect([removed.status, memberIdsOf(removed.json)]).toEqual([200, []]);
    const other = await newGroup(a.id, b.id);
    const body = { displayName: other.displayName };
    const put = await tenant.send('PUT', `/Groups/${other.id}`, body);
    expect([put.status, memberIdsOf(put.json)]).toEqual([200, []]);
  });

  it('keeps active when a PUT omits it, and defaults to true only on POST', async () => {
    const leaver = await newUser({ active: false });
    const put = await tenant.send('PUT', `/Users/${leaver.id}`, { userName: leaver.userName });
    expect([put.status, put.json.active]).toEqual([200, false]);
    const nulled = { userName: leaver.userName, active: null };
    expect((await tenant.send('PUT', `/Users/${leaver.id}`, nulled)).json.active).toBe(false);
    expect((await newUser()).active).toBe(true);
  });

  it.each<object>([
    { op: 'remove', path: 'active' },
    { op: 'replace', path: 'active', value: '' },
    { op: 'replace', path: 'active', value: null },
    { op: 'replace', path: 'active' },
    { op: 'replace', path: 'active', value: [] },
    { op: 'replace', value: { active: null } },
    { op: 'add', value: { active: '' } },
  ])('refuses %j: active has exactly one value', async (operation) => {
    const { id } = await newUser();
    expectScimError(await patch(`/Users/${id}`, operation), 400, 'invalidValue');
    expect((await shown(tenant, 'Users', id)).active).toBe(true);
  });

  it('keeps userName when a PUT omits it, and requires it on POST', async () => {
    const user = await newUser({ title: 'x' });
    const put = await tenant.send('PUT', `/Users/${user.id}`, { title: 'y' });
    expect(put.json).toMatchObject({ userName: user.userName, title: 'y' });
    expectScimError(await tenant.send('POST', '/Users', { title: 'y' }), 400, 'invalidSyntax');
  });

  it('renames users', async () => {
    const user = await newUser({ emails: [{ value: address(), primary: true }] });
    const [userName, value] = [address(), address()];
    const answer = await patch(
      `/Users/${user.id}`,
      { op: 'replace', path: 'userName', value: userName },
      { op: 'replace', path: 'emails[primary eq true].value', value },
    );
    expect(answer.json).toMatchObject({ userName, emails: [{ value, primary: true }] });
    expect(await found(tenant, 'Users', `userName eq "${user.userName}"`)).toEqual([]);
    expect(await found(tenant, 'Users', `userName eq "${userName}"`)).toEqual([answer.json]);
    await newUser({ userName: user.userName });
  });

  it('applies operations in order, all of them or none', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const answer = await patch(
      `/Users/${a.id}`,
      { op: 'add', path: 'title', value: 'first' },
      { op: 'remove', path: 'title' },
      { op: 'add', path: 'nickName', value: 'first' },
      { op: 'replace', path: 'nickName', value: 'second' },
    );
    expect(answer.json).toMatchObject({ nickName: 'second' });
    expect(answer.json).not.toHaveProperty('title');
    const failed = await patch(
      `/Users/${a.id}`,
      { op: 'replace', path: 'nickName', value: 'third' },
      { op: 'replace', path: 'title', value: true },
    );
    expectScimError(failed, 400, 'invalidValue');
    expect(await shown(tenant, 'Users', a.id)).toEqual(answer.json);

    const group = await newGroup(a.id);
    const half = await patch(
      `/Groups/${group.id}`,
      { op: 'add', path: 'members', value: [{ value: b.id }] },
      { op: 'replace', path: 'displayName', value: 'half' },
      { op: 'add', path: 'members', value: [{ value: 42 }] },
    );
    expectScimError(half, 400, 'invalidValue');
    expect(await shown(tenant, 'Groups', group.id)).toEqual(group);
  });

  it('allows one primary value: a new one clears the others', async () => {
    const { id } = await newUser({
      emails: [
        { type: 'home', value: 'h@x.example', primary: true },
        { type: 'work', value: 'w@x.example' },
      ],
    });
    const primaries = (user: { emails: { value: string; primary?: boolean }[] }) =>
      user.emails.filter(({ primary }) => primary === true).map(({ value }) => value);
    const inPlace = await patch(`/Users/${id}`, {
      op: 'replace',
      path: 'emails[type eq "work"].primary',
      value: 'True',
    });
    expect(primaries(inPlace.json)).toEqual(['w@x.example']);
    const value = [{ type: 'other', value: 'o@x.example', primary: true }];
    const added = await patch(`/Users/${id}`, { op: 'add', path: 'emails', value });
    expect(primaries(added.json)).toEqual(['o@x.example']);
    expect(added.json.emails).toHaveLength(3);
  });
});

describe('rules where clients, test suites and the RFC disagree', () => {
  it('PATCH on a group answers 200 up to 200 members or when attributes were asked for, else 204', async () => {
    const crowd = await addTenant(app);
    const ids = await insertUsers(app, crowd, 201);
    const { id } = await made(crowd, 'Groups', { displayName: 'crowd' });
    await insertMembers(app, id, ids.slice(0, 200));
    const rename = (query = '') =>
      crowd.send(
        'PATCH',
        `/Groups/${id}${query}`,
        patchOf({ op: 'replace', path: 'displayName', value: randomUUID() }),
      );
    const small = await rename();
    expect([small.status, memberIdsOf(small.json)]).toEqual([200, ids.slice(0, 200)]);
    await insertMembers(app, id, ids.slice(200));
    const large = await rename();
    expect([large.status, large.text]).toEqual([204, '']);
    expect(large.headers.get('etag')).toMatch(/^W\//);
    const asked = await rename('?attributes=displayName');
    expect([asked.status, Object.keys(asked.json)]).toEqual([
      200,
      ['schemas', 'id', 'displayName'],
    ]);
    const members = await rename('?attributes=members');
    expect([members.status, memberIdsOf(members.json)]).toEqual([200, ids]);
  });

  it('a body of another type is 415, and the error names both accepted types', async () => {
    const type = { 'content-type': 'text/plain' };
    for (const path of ['/Users', '/Groups', '/Bulk', '/.search', '/Users/.search']) {
      const answer = await tenant.send('POST', path, '{}', type);
      expectScimError(answer, 415);
      expect(answer.json.detail).toMatch(/application\/scim\+json or application\/json/);
    }
  });

  it('the status of an error is a string', async () => {
    const { json } = await tenant.send('GET', '/Users/x');
    expect(json.status).toBe('404');
  });

  it('a missing required attribute is invalidSyntax on POST and PUT, and invalidValue on PATCH', async () => {
    const group = await newGroup();
    const user = await newUser();
    for (const body of [{}, { displayName: '' }, { displayName: '  ' }, { displayName: null }]) {
      expectScimError(await tenant.send('POST', '/Groups', body), 400, 'invalidSyntax');
      expectScimError(await tenant.send('PUT', `/Groups/${group.id}`, body), 400, 'invalidSyntax');
    }
    for (const body of [{}, { userName: '' }, { userName: '  ' }, { userName: null }]) {
      expectScimError(await tenant.send('POST', '/Users', body), 400, 'invalidSyntax');
    }
    for (const value of ['', null, '  ']) {
      for (const [path, attribute] of [
        [`/Users/${user.id}`, 'userName'],
        [`/Groups/${group.id}`, 'displayName'],
      ] as const) {
        const replaced = await patch(path, { op: 'replace', path: attribute, value });
        expectScimError(replaced, 400, 'invalidValue');
        expectScimError(await patch(path, { op: 'remove', path: attribute }), 400, 'invalidValue');
      }
    }
  });

  it('Group.displayName is required and unique in /Schemas, externalId listed and case-exact', async () => {
    const attributeOf = async (schema: string, wanted: string) => {
      const { json } = await tenant.send('GET', `/Schemas/${schema}`);
      return (json.attributes as { name: string }[]).find(({ name }) => name === wanted);
    };
    const group = 'urn:ietf:params:scim:schemas:core:2.0:Group';
    expect(await attributeOf(group, 'displayName')).toMatchObject({
      required: true,
      uniqueness: 'server',
      caseExact: false,
    });
    for (const schema of [CORE_USER, group]) {
      expect(await attributeOf(schema, 'externalId')).toMatchObject({ caseExact: true });
    }
    const user = await newUser({ externalId: 'AbC' });
    expect(await found(tenant, 'Users', `externalId eq "AbC"`)).toEqual([user]);
    expect(await found(tenant, 'Users', `externalId eq "abc"`)).toEqual([]);
  });

  it('nextCursor is present only when a cursor was requested', async () => {
    await Promise.all([newUser(), newUser()]);
    const byIndex = await tenant.send('GET', '/Users?count=1');
    expect(Object.keys(byIndex.json)).not.toContain('nextCursor');
    const byCursor = await tenant.send('GET', '/Users?count=1&cursor');
    expect(byCursor.json.nextCursor).toEqual(expect.any(String));
    expect(byCursor.json).not.toHaveProperty('startIndex');
  });

  it('a startIndex past the end is returned unchanged, with no resources', async () => {
    for (const startIndex of [100_000, 2_147_483_647]) {
      const { status, json } = await tenant.send('GET', withQuery('/Users', { startIndex }));
      expect(status).toBe(200);
      expect(json).toMatchObject({ startIndex, itemsPerPage: 0, Resources: [] });
      expect(json.totalResults).toBeGreaterThan(0);
    }
  });

  it('discovery requires the token (401), is not filtered (403) and allows only GET (405)', async () => {
    for (const path of ['/ServiceProviderConfig', '/Schemas', '/ResourceTypes']) {
      const bare = await tenant.send('GET', path, undefined, { authorization: '' });
      expectScimError(bare, 401);
      expectScimError(await tenant.send('GET', withQuery(path, { filter: 'id pr' })), 403);
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        const answer = await tenant.send(method, path, method === 'DELETE' ? undefined : {});
        expectScimError(answer, 405);
        expect(answer.headers.get('allow')).toMatch(/\bGET\b/);
      }
      expect((await tenant.send('GET', path)).status).toBe(200);
    }
  });

  it('/Schemas lists those of the discovery documents too', async () => {
    const { json } = await tenant.send('GET', '/Schemas');
    const ids = (json.Resources as { id: string }[]).map(({ id }) => id.split(':').at(-1));
    expect(ids).toEqual([
      'User',
      'User',
      'Group',
      'ServiceProviderConfig',
      'ResourceType',
      'Schema',
    ]);
  });

  it('an unknown path is 404', async () => {
    for (const path of ['/Nothing', '/Users/a/b', '/Schemas/x', '/ResourceTypes/x', '/Bulk/x']) {
      expectScimError(await tenant.send('GET', path), 404);
    }
  });
});
