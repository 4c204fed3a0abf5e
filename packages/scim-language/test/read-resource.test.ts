import { describe, expect, it } from 'vitest';
import {
  ENTERPRISE_URN,
  GROUP_URN,
  readGroup,
  readReplacement,
  readUser,
  ScimError,
  USER_URN,
} from '@svc/scim-language';

function refusal(act: () => unknown): string | undefined {
  try {
    act();
  } catch (error) {
    if (error instanceof ScimError) return error.scimType;
    throw error;
  }
  return undefined;
}
const create = (body: unknown) => readUser(body);
const refused = (body: unknown) => refusal(() => create(body));

const LEAVER = {
  userName: 'babs@example.com',
  externalId: '00u1',
  active: false,
  displayName: 'Babs',
  attributes: { title: 'Guide' },
};

describe('the body of a user', () => {
  it('O3: splits columns from attributes in canonical case, and drops groups and password', () => {
    const user = create({
      schemas: [USER_URN],
      USERNAME: ' Babs@Example.com ',
      name: { givenName: 'Barbara', FamilyName: 'Jensen', middleName: '' },
      emails: [{ primary: true, value: 'Babs@Example.com', type: 'work', display: 'x' }],
      displayName: 'Babs',
      locale: 'en-US',
      externalId: '00uJensen',
      groups: [],
      password: 'hunter2',
      active: true,
    });
    expect(user).toEqual({
      userName: 'Babs@Example.com',
      externalId: '00uJensen',
      active: true,
      displayName: 'Babs',
      attributes: {
        name: { givenName: 'Barbara', familyName: 'Jensen' },
        emails: [{ primary: true, value: 'Babs@Example.com', type: 'work', display: 'x' }],
        locale: 'en-US',
      },
    });
  });

  it('E3: drops nulls and a given meta, and keeps roles unchanged', () => {
    const role = '{"id":"18d1","value":"Engineer"}';
    const user = create({
      schemas: [USER_URN, ENTERPRISE_URN, 'urn:example:other'],
      userName: 'babs',
      id: null,
      active: null,
      title: null,
      meta: { resourceType: 'User', created: 'yesterday' },
      roles: [{ value: role, primary: 'True' }],
      entitlements: [],
      [ENTERPRISE_URN]: { employeeNumber: null, manager: 'm1', nosuch: 1 },
      'urn:example:other': { enabled: 5 },
      nosuch: { deep: [1] },
    });
    expect(user).toMatchObject({ active: true, externalId: undefined });
    expect(user.attributes).toEqual({
      roles: [{ value: role, primary: true }],
      [ENTERPRISE_URN]: { manager: { value: 'm1' } },
    });
  });

  it('OneLogin and Ping: accepts booleans as strings and users who start inactive', () => {
    expect(create({ userName: 'b', active: 'true', id: null }).active).toBe(true);
    expect(create({ userName: 'b', active: 'FALSE' }).active).toBe(false);
  });

  it('keeps only userName and active on PUT, so that a profile update enables no user', () => {
    const replace = (body: unknown) => readReplacement(body, LEAVER).user;
    expect(replace({ title: 'Chief' })).toEqual({
      userName: 'babs@example.com',
      externalId: undefined,
      active: false,
      displayName: undefined,
      attributes: { title: 'Chief' },
    });
    expect(replace({ active: null }).active).toBe(false);
    expect(replace({ active: 'True', userName: 'new@example.com' })).toMatchObject({
      active: true,
      userName: 'new@example.com',
    });
    expect(refusal(() => replace({ userName: ' ' }))).toBe('invalidSyntax');
    expect(refusal(() => replace({ active: '' }))).toBe('invalidValue');
  });

  it.each([{}, true, ['x']])('refuses %j under a dotted key, and keeps it beside active', (bad) => {
    const name = { givenName: 'Barbara', familyName: 'Jensen' };
    const manager = { value: '5' };
    const stored = { ...LEAVER, attributes: { name, [ENTERPRISE_URN]: { manager } } };
    const dotted = { 'Name.givenName': bad, 'name.familyName': 'New' };
    expect(refused({ userName: 'b', ...dotted })).toBe('invalidValue');
    expect(refusal(() => readReplacement(dotted, stored))).toBe('invalidValue');
    for (const [body, kept] of [
      [dotted, { name: { givenName: 'Barbara', familyName: 'New' } }],
      [{ 'name.givenName': bad }, { name: { givenName: 'Barbara' } }],
      [{ name: 5, 'name.givenName': 'New' }, { name: { ...name, givenName: 'New' } }],
      [{ NAME: { active: true } }, { name }],
      [{ [`${ENTERPRISE_URN}:manager.value`]: bad }, { [ENTERPRISE_URN]: { manager } }],
    ] as const) {
      const { user, leftOut } = readReplacement({ ...body, active: false }, stored);
      expect([body, user.active, user.attributes]).toEqual([body, false, kept]);
      expect(leftOut).toHaveLength(1);
    }
  });

  it('has no complex attribute without a part', () => {
    const empty = { 'name.givenName': '', [`${ENTERPRISE_URN}:manager.value`]: '' };
    expect(create({ userName: 'b', ...empty }).attributes).toEqual({});
    expect(readReplacement(empty, LEAVER).user.attributes).toEqual({});
    const half = { 'name.givenName': '', name: { familyName: 'Jensen' } };
    expect(create({ userName: 'b', ...half }).attributes).toEqual({
      name: { familyName: 'Jensen' },
    });
  });

  it.each([undefined, null, 'x', [], {}, { userName: null }, { userName: '' }, { userName: ' ' }])(
    'is refused without userName as invalidSyntax: %j',
    (body) => expect(refused(body)).toBe('invalidSyntax'),
  );

  it.each([
    { userName: true },
    { userName: ['b'] },
    { userName: 'b', active: 'yes' },
    { userName: 'b', active: 1 },
    { userName: 'b', active: '' },
    { userName: 'b', active: [] },
    { userName: 'b', ACTIVE: true, active: false },
    { userName: 'b', [USER_URN]: { userName: 'c' } },
    { userName: 'b', title: true },
    { userName: 'b', title: { value: 'x' } },
    { userName: 'b', name: 'Babs' },
    { userName: 'b', name: { givenName: 'a', GIVENNAME: 'b' } },
    { userName: 'b', emails: [[{ value: 'x' }]] },
    { userName: 'b', emails: [{ value: true }] },
    { userName: 'b', emails: [5] },
    {
      userName: 'b',
      emails: [
        { value: 'x', primary: true },
        { value: 'y', primary: 'TRUE' },
      ],
    },
    { userName: 'b', [ENTERPRISE_URN]: { manager: [{ value: 'x' }, { value: 'y' }] } },
    { userName: 'b', [`${ENTERPRISE_URN}:department`]: ['x'] },
    { userName: 'b', [ENTERPRISE_URN]: { department: 'x', Department: 'y' } },
    { userName: 'b', [ENTERPRISE_URN]: { department: 'x' }, [`${ENTERPRISE_URN}.department`]: 'y' },
    { userName: 'b'.repeat(513) },
    { userName: 'b', externalId: 'b'.repeat(513) },
    { userName: 'b', title: 'x'.repeat(16_385) },
    { userName: 'b', roles: Array.from({ length: 101 }, (_, n) => `r${n}`) },
  ])('is refused with a wrong type as invalidValue: %j', (body) =>
    expect(refused(body)).toBe('invalidValue'),
  );

  it.each([
    { userName: 'b\0' },
    { userName: 'b', externalId: '\udfff' },
    { userName: 'b', 'un\0known': 1 },
    { userName: 'b', emails: [{ value: 'x', unknown: { a: ['\ud800'] } }] },
  ])('is refused with characters that cannot be stored as invalidSyntax: %j', (body) => {
    expect(refused(body)).toBe('invalidSyntax');
    expect(refusal(() => readReplacement(body, LEAVER).user)).toBe('invalidSyntax');
  });

  it.each<[object, object | undefined]>([
    [{ department: 'X' }, { department: 'X' }],
    [
      { DEPARTMENT: 'X', 'manager.value': '5' },
      { department: 'X', manager: { value: '5' } },
    ],
    [
      { manager: 'Jane', [ENTERPRISE_URN]: { manager: { value: '5' } } },
      { manager: { value: '5' } },
    ],
    [{ [ENTERPRISE_URN]: { department: 'Y' }, department: 'X' }, { department: 'Y' }],
    [{ 'manager.value': '6', [`${ENTERPRISE_URN}:manager`]: '5' }, { manager: { value: '5' } }],
    [{ organization: { name: 'x' }, division: ['a', 'b'], costCenter: true }, undefined],
    [
      { manager: [{ value: 'a' }, { value: 'b' }], 'manager.value': {}, division: 'd' },
      { division: 'd' },
    ],
    [{ department: 'X', Department: 'Y', division: 'd' }, { division: 'd' }],
  ])(
    'has bare names of the extension only if they fit and no full name is there: %j',
    (body, stored) => {
      const user = create({ userName: 'b', ...body });
      expect(user.attributes[ENTERPRISE_URN]).toEqual(stored);
      const replaced = readReplacement(body, LEAVER);
      expect([replaced.user.attributes[ENTERPRISE_URN], replaced.leftOut]).toEqual([stored, []]);
    },
  );

  it('creates no prototypes, and no attributes named as those of Object', () => {
    const body: unknown = JSON.parse(
      '{"userName":"b","__proto__":{"userName":"c"},"constructor":"x","name":{"__proto__":{"x":1},"givenName":"B"}}',
    );
    const user = create(body);
    expect(user.userName).toBe('b');
    expect(JSON.stringify(user.attributes)).toBe('{"name":{"givenName":"B"}}');
    expect(Object.getPrototypeOf(user.attributes)).toBeNull();
  });

  it.each([
    { 'active.value': false },
    { ' active': false },
    { $active: false },
    { [ENTERPRISE_URN]: { active: false } },
    { [`${ENTERPRISE_URN}:active`]: false },
    { [USER_URN]: [{ active: false }] },
    { [USER_URN]: { [USER_URN]: { active: false } } },
    { User: { Active: false } },
    { name: { active: false } },
    { nosuch: [[{ deep: { ACTIVE: null } }]] },
    JSON.parse('{"__proto__":{"active":false}}') as object,
  ])('is refused where active is at an unexpected place: %j', (body) => {
    expect(refused({ userName: 'b', ...body })).toBe('invalidValue');
    expect(refusal(() => readReplacement(body, LEAVER).user)).toBe('invalidValue');
    expect(refused({ userName: 'b', active: true, ...body })).toBe('invalidValue');
  });

  it.each([
    { 'urn:ietf:params:scim:schemas:core:1.0:User:active': false },
    { 'urn:ietf:params:scim:schemas:core:1.0:User': { active: false } },
    { 'urn:x:y': { licenses: [{ active: true }] } },
  ])('E34: may have active under the URN of an unknown schema beside its own: %j', (body) => {
    expect(refused({ userName: 'b', ...body })).toBe('invalidValue');
    expect(refusal(() => readReplacement(body, LEAVER).user)).toBe('invalidValue');
    for (const active of [true, 'False']) {
      const own = { userName: 'b', active };
      expect(create({ ...own, ...body })).toEqual(create(own));
      expect(readReplacement({ ...own, ...body }, LEAVER).user).toEqual(
        readReplacement(own, LEAVER).user,
      );
    }
  });

  it('may contain an unknown schema, unless active is inside it', () => {
    const odd = {
      'urn:x:y': { members: [], enabled: false, status: 'active', inactive: true },
      'urn:x:y:enabled': false,
      isActive: false,
      [USER_URN]: 'x',
      [`${ENTERPRISE_URN}:active`]: null,
    };
    expect(create({ userName: 'b', ...odd })).toEqual(create({ userName: 'b' }));
  });

  it('drops labels without a value, and duplicates', () => {
    const emails = [{ type: 'work' }, {}, { value: '' }, null, 'a@b.c', { value: 'a@b.c' }];
    expect(create({ userName: 'b', emails }).attributes).toEqual({ emails: [{ value: 'a@b.c' }] });
  });
});

describe('the body of a group', () => {
  it('O11, E14: contains a name, and the ids of its members', () => {
    expect(
      readGroup({
        schemas: [
          GROUP_URN,
          'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group',
        ],
        DISPLAYNAME: ' Tours ',
        externalId: 'x',
        id: 'mine',
        members: [{ value: 'a', display: 'A', $ref: null }, 'b', { VALUE: 'a' }],
      }),
    ).toEqual({ displayName: 'Tours', externalId: 'x', members: ['a', 'b'] });
    for (const members of [undefined, null, []]) {
      expect(readGroup({ displayName: 'T', members })).toEqual({
        displayName: 'T',
        externalId: undefined,
        members: [],
      });
    }
  });

  it('may have more members than the limit of other lists', () => {
    const members = Array.from({ length: 1000 }, (_, n) => ({ value: `id${n}` }));
    expect(readGroup({ displayName: 'T', members }).members).toHaveLength(1000);
  });

  it('accepts its members also under the URN of its schema, and in any case', () => {
    const of = (body: object) => readGroup({ displayName: 'T', ...body }).members;
    expect(of({ [GROUP_URN]: { members: ['a'] } })).toEqual(['a']);
    expect(of({ [`${GROUP_URN}:Members`]: ['a'] })).toEqual(['a']);
    expect(of({ members: null, Members: ['a'] })).toEqual(['a']);
  });

  it.each([
    { members: ['a'], [GROUP_URN]: { members: ['a'] } },
    { members: [], Members: ['a'] },
    { 'members.value': 'a' },
    { 'members.display': 'a' },
    { 'members[value eq "a"]': { value: 'a' } },
    { [`${GROUP_URN}:members.value`]: 'a' },
    { [GROUP_URN]: [{ members: ['a'] }] },
    { Group: { members: ['a'] } },
    { 'urn:ietf:params:scim:schemas:core:1.0:Group': { members: ['a'] } },
    { 'urn:ietf:params:scim:schemas:core:1.0:Group:members': ['a'] },
  ])('is refused when a member cannot be parsed: %j', (body) => {
    expect(refusal(() => readGroup({ displayName: 'T', ...body }))).toBe('invalidValue');
  });

  it('E34: may have members under the URN of an unknown schema beside its own', () => {
    const own = { displayName: 'T', members: ['a'] };
    for (const foreign of [{ 'urn:x:y:members': 5 }, { 'urn:x:y': { members: ['b'] } }]) {
      expect(readGroup({ ...own, ...foreign })).toEqual(readGroup(own));
      expect(refusal(() => readGroup({ displayName: 'T', ...foreign }))).toBe('invalidValue');
    }
  });

  it('is refused without a name, or with members without an id', () => {
    for (const displayName of [undefined, null, '', ' ']) {
      expect(refusal(() => readGroup({ displayName }))).toBe('invalidSyntax');
    }
    for (const members of [[{}], [5], [[]], [null], 5, [{ value: 5 }], [{ $ref: 'x' }]]) {
      expect(
        refusal(() => readGroup({ displayName: 'T', members })),
        JSON.stringify(members),
      ).toBe('invalidValue');
    }
    expect(refusal(() => readGroup({ displayName: 'x'.repeat(513) }))).toBe('invalidValue');
    expect(refusal(() => readGroup({ displayName: 'T', members: [], Members: ['a'] }))).toBe(
      'invalidValue',
    );
  });
});
