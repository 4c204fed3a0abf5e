import { describe, expect, it } from 'vitest';
import {
  ENTERPRISE_URN,
  patchGroup,
  patchUser,
  readOperations,
  readUser,
  ScimError,
  USER_URN,
  type UserAttributes,
} from '@svc/scim-language';

const PATCH_URN = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';

const BABS = readUser({
  schemas: [USER_URN, ENTERPRISE_URN],
  userName: 'bjensen@example.com',
  externalId: 'bjensen',
  displayName: 'Babs Jensen',
  nickName: 'Babs',
  name: { givenName: 'Barbara', familyName: 'Jensen' },
  emails: [
    { value: 'bjensen@example.com', type: 'work', primary: true },
    { value: 'babs@jensen.org', type: 'home' },
  ],
  addresses: [
    { type: 'work', streetAddress: '100 Universal City Plaza', locality: 'Hollywood' },
    { type: 'home', streetAddress: '456 Hollywood Blvd' },
  ],
  [ENTERPRISE_URN]: { employeeNumber: '701984', manager: { value: 'm1', $ref: '../Users/m1' } },
});

const body = (...Operations: unknown[]) => ({ schemas: [PATCH_URN], Operations });

function patch(...operations: unknown[]): UserAttributes {
  return patchUser(BABS, readOperations(body(...operations))).user;
}

function patchMembers(...operations: unknown[]) {
  return patchGroup(readOperations(body(...operations)));
}

function refusal(act: () => unknown): string | undefined {
  try {
    act();
  } catch (error) {
    if (error instanceof ScimError) return error.scimType;
    throw error;
  }
  return undefined;
}
const refused = (...operations: unknown[]) => refusal(() => patch(...operations));
const refusedOfGroup = (...operations: unknown[]) => refusal(() => patchMembers(...operations));

const WORK = { value: 'bjensen@example.com', type: 'work', primary: true };
const HOME = { value: 'babs@jensen.org', type: 'home' };

describe('the body of a PATCH (RFC 7644 §3.5.2)', () => {
  it('accepts keys and operations in any case', () => {
    const read = readOperations({ OPERATIONS: [{ OP: 'Replace', Path: 'title', VALUE: 'x' }] });
    expect(read).toEqual([{ op: 'replace', path: 'title', value: 'x' }]);
    expect(readOperations(body({ op: 'ADD', path: null, value: {} }))[0]?.path).toBeUndefined();
  });

  it('is refused when it is malformed', () => {
    const code = (given: unknown) => refusal(() => patchUser(BABS, readOperations(given)));
    for (const given of [null, [], 'x', {}, { Operations: {} }, { Operations: [] }]) {
      expect(code(given)).toBe('invalidSyntax');
    }
    expect(code(body(null))).toBe('invalidSyntax');
    expect(code(body({ op: 'delete' }))).toBe('invalidSyntax');
    expect(code(body({ op: 'add', path: 5, value: 'x' }))).toBe('invalidPath');
    expect(code({ __proto__: { Operations: [{ op: 'add' }] } })).toBe('invalidSyntax');
    const twice = [
      { ...body({ op: 'add' }), operations: [] },
      body({ op: 'add', OP: 'remove' }),
      body({ op: 'replace', path: 'displayName', Path: 'active', value: 'False' }),
      body({ op: 'replace', path: 'active', value: true, Value: false }),
    ];
    for (const given of twice) expect(code(given)).toBe('invalidSyntax');
    const many = (length: number) =>
      body(...Array.from({ length }, () => ({ op: 'add', value: {} })));
    expect(code(many(1000))).toBeUndefined();
    expect(code(many(1001))).toBe('tooMany');
  });
});

describe('add (RFC 7644 §3.5.2.1)', () => {
  it('appends to a list and sets a single value', () => {
    const patched = patch({
      op: 'add',
      value: { emails: [{ value: 'new@example.com', type: 'other' }], nickname: 'Barb' },
    });
    expect(patched.attributes['emails']).toEqual([
      WORK,
      HOME,
      { value: 'new@example.com', type: 'other' },
    ]);
    expect(patched.attributes['nickName']).toBe('Barb');
  });

  it('skips an element that is present already, and does not mutate its input', () => {
    const before = structuredClone(JSON.stringify(BABS));
    const patched = patch({ op: 'add', path: 'emails', value: [HOME] });
    expect(patched).toEqual(BABS);
    patch(
      { op: 'replace', path: 'emails.value', value: 'x@example.com' },
      { op: 'remove', path: 'name' },
    );
    expect(JSON.stringify(BABS)).toBe(before);
  });

  it('unsets the old primary value when a new primary is added', () => {
    const patched = patch({ op: 'add', path: 'emails', value: { ...HOME, primary: true } });
    expect(patched.attributes['emails']).toEqual([
      { value: 'bjensen@example.com', type: 'work' },
      { ...HOME, primary: true },
    ]);
    const chosen = patch({ op: 'add', path: 'emails[type eq "home"].primary', value: 'True' });
    expect(chosen.attributes['emails']).toEqual(patched.attributes['emails']);
    expect(refused({ op: 'add', path: 'emails.primary', value: true })).toBe('invalidValue');
    const both = [
      { value: 'a', primary: true },
      { value: 'b', primary: 'true' },
    ];
    expect(refused({ op: 'replace', path: 'emails', value: both })).toBe('invalidValue');
  });

  it('E9 creates the element that the brackets describe', () => {
    const path = 'phoneNumbers[type eq "mobile"].value';
    expect(patch({ op: 'Add', path, value: '+1 555' }).attributes['phoneNumbers']).toEqual([
      { type: 'mobile', value: '+1 555' },
    ]);
    const whole = patch({
      op: 'add',
      path: 'phoneNumbers[type eq "fax" and display eq "Fax"]',
      value: { value: '+1 556' },
    });
    expect(whole.attributes['phoneNumbers']).toEqual([
      { type: 'fax', display: 'Fax', value: '+1 556' },
    ]);
    expect(refused({ op: 'add', path: 'phoneNumbers[type ne "fax"].value', value: '1' })).toBe(
      'noTarget',
    );
  });
});

describe('remove (RFC 7644 §3.5.2.2)', () => {
  it('removes an attribute, a sub-attribute, selected elements, and parts of elements', () => {
    const patched = patch(
      { op: 'remove', path: 'nickName' },
      { op: 'remove', path: 'name.familyName' },
      { op: 'remove', path: 'emails[type eq "home" and value ew "@jensen.org"]' },
      { op: 'remove', path: 'addresses[type eq "work"].locality' },
      { op: 'remove', path: 'manager' },
    );
    expect(patched.attributes).toEqual({
      name: { givenName: 'Barbara' },
      emails: [WORK],
      addresses: [
        { type: 'work', streetAddress: '100 Universal City Plaza' },
        { type: 'home', streetAddress: '456 Hollywood Blvd' },
      ],
      [ENTERPRISE_URN]: { employeeNumber: '701984' },
    });
    for (const operation of [
      { op: 'remove', path: ENTERPRISE_URN },
      { op: 'replace', path: ENTERPRISE_URN, value: null },
      { op: 'replace', value: { [ENTERPRISE_URN]: null } },
    ]) {
      expect(patch(operation).attributes).not.toHaveProperty([ENTERPRISE_URN]);
    }
  });

  it('succeeds when the value is absent', () => {
    expect(patch({ op: 'remove', path: 'emails[type eq "other"]' })).toEqual(BABS);
    expect(patch({ op: 'remove', path: 'emails[type eq "other"].value' })).toEqual(BABS);
    expect(patch({ op: 'remove', path: 'title' })).toEqual(BABS);
  });

  it('removes only the listed values', () => {
    const patched = patch({ op: 'remove', path: 'emails', value: [{ value: 'babs@jensen.org' }] });
    expect(patched.attributes['emails']).toEqual([WORK]);
    expect(patch({ op: 'remove', path: 'emails' }).attributes).not.toHaveProperty('emails');
  });

  it('compares listed values as a filter does, and an absent primary with false', () => {
    const home = { value: 'Babs@Jensen.org', type: 'HOME', primary: false };
    const patched = patch({ op: 'remove', path: 'emails', value: [home] });
    expect(patched.attributes['emails']).toEqual([WORK]);
    const others = [
      { ...home, primary: true },
      { ...home, display: 'x' },
    ];
    expect(patch({ op: 'remove', path: 'emails', value: others })).toEqual(BABS);
  });

  it('requires a path, and keeps required attributes', () => {
    expect(refused({ op: 'remove' })).toBe('noTarget');
    expect(refused({ op: 'remove', value: { nickName: 'Babs' } })).toBe('noTarget');
    expect(refused({ op: 'remove', path: USER_URN })).toBe('noTarget');
    expect(refused({ op: 'remove', path: 'userName' })).toBe('invalidValue');
    expect(refused({ op: 'remove', path: 'active' })).toBe('invalidValue');
  });
});

describe('replace (RFC 7644 §3.5.2.3)', () => {
  it('replaces all values of a list, selected values, or parts of values', () => {
    const address = { type: 'work', streetAddress: '911 Universal City Plaza', country: 'US' };
    const chosen = patch({ op: 'replace', path: 'addresses[type eq "work"]', value: address });
    expect(chosen.attributes['addresses']).toEqual([
      address,
      { type: 'home', streetAddress: '456 Hollywood Blvd' },
    ]);
    const part = patch({
      op: 'replace',
      path: 'addresses[type eq "work"].streetAddress',
      value: '1010 Broadway Ave',
    });
    expect(part.attributes['addresses']).toMatchObject([
      { type: 'work', streetAddress: '1010 Broadway Ave', locality: 'Hollywood' },
      {},
    ]);
    const all = patch({ op: 'replace', path: 'emails', value: [{ value: 'b@example.com' }] });
    expect(all.attributes['emails']).toEqual([{ value: 'b@example.com' }]);
  });

  it('keeps the sub-attributes that it does not name', () => {
    const patched = patch({ op: 'replace', path: 'name', value: { GIVENNAME: 'Babs' } });
    expect(patched.attributes['name']).toEqual({ givenName: 'Babs', familyName: 'Jensen' });
  });

  it('fails with noTarget when the filter matches nothing, unless it describes the element to create', () => {
    const path = 'emails[type eq "other"].value';
    expect(patch({ op: 'replace', path, value: 'x' }).attributes['emails']).toContainEqual({
      type: 'other',
      value: 'x',
    });
    expect(
      refused({
        op: 'replace',
        path: 'emails[type ne "work" and type ne "home"].value',
        value: 'x',
      }),
    ).toBe('noTarget');
    expect(refused({ op: 'replace', path: 'emails[type eq "other"]', value: { value: 'x' } })).toBe(
      'noTarget',
    );
  });

  it.each([null, [], ''])('removes an optional attribute with %j', (value) => {
    const patched = patch(
      ...['nickName', 'displayName', 'emails', 'name', 'manager', 'externalId'].map((path) => ({
        op: 'replace',
        path,
        value,
      })),
    );
    expect(patched.displayName).toBeUndefined();
    expect(patched.externalId).toBeUndefined();
    expect(Object.keys(patched.attributes)).toEqual(['addresses', ENTERPRISE_URN]);
    expect(refused({ op: 'replace', path: 'userName', value })).toBe('invalidValue');
    expect(refused({ op: 'replace', value: { active: value } })).toBe('invalidValue');
  });

  it('follows a user to a new name', () => {
    const patched = patch({ op: 'replace', path: 'userName', value: ' Barbara@Example.com ' });
    expect(patched.userName).toBe('Barbara@Example.com');
    expect(refused({ op: 'replace', path: 'userName', value: '  ' })).toBe('invalidValue');
  });
});

describe('active', () => {
  it.each([
    ['O8', { op: 'replace', value: { active: false } }],
    ['O8', { op: 'replace', value: { active: false, password: 'hunter2' } }],
    ['E5', { op: 'Replace', path: 'active', value: 'False' }],
    ['OneLogin', { op: 'replace', path: 'active', value: 'false' }],
    ['', { op: 'add', path: 'Active', value: 'FALSE' }],
    ['', { op: 'replace', path: `${USER_URN}:active`, value: false }],
    ['', { op: 'replace', value: { [`${USER_URN}:active`]: 'false' } }],
    ['', { op: 'replace', value: { [USER_URN]: { ACTIVE: false } } }],
    ['', { op: 'replace', path: USER_URN, value: { active: false } }],
  ])('%s %j disables the user', (_, operation) => expect(patch(operation).active).toBe(false));

  it.each([
    { op: 'replace', path: 'active', value: 'no' },
    { op: 'replace', path: 'active', value: 0 },
    { op: 'replace', path: 'active', value: ['False'] },
    { op: 'replace', path: 'active', value: { value: false } },
    { op: 'replace', path: 'active' },
    { op: 'replace', path: 'active.value', value: false },
    { op: 'replace', path: 'active[value eq true]', value: false },
    { op: 'replace', path: 'urn:example:User:active', value: false },
    { op: 'replace', path: `${ENTERPRISE_URN}:active`, value: false },
    { op: 'replace', value: { 'active.value': false } },
    { op: 'replace', value: { 'active[': false } },
    { op: 'replace', value: { ' active ': 'x' } },
    { op: 'replace', value: { [ENTERPRISE_URN]: { active: false } } },
    { op: 'replace', path: '$active', value: false },
    { op: 'replace', value: { User: { active: false } } },
    { op: 'replace', value: { [USER_URN]: { [USER_URN]: { active: false } } } },
    { op: 'replace', value: { 'urn:ietf:params:scim:schemas:core:1.0:User': { active: false } } },
    {
      op: 'replace',
      path: 'urn:ietf:params:scim:schemas:core:1.0:User',
      value: { active: false },
    },
    { op: 'replace', path: 'user', value: { active: false } },
    { op: 'replace', path: 'user', value: [{ accounts: [{ active: false }] }] },
    { op: 'replace', path: 'name', value: { active: false } },
    { op: 'add', value: { name: { givenName: 'B', active: false } } },
    { op: 'replace', value: { active: false, Active: true } },
    { op: 'replace', value: { active: 'False', [`${USER_URN}:active`]: 'True' } },
    { op: 'replace', value: { active: false, [USER_URN]: { active: true } } },
    { op: 'replace', value: false },
    { op: 'replace', value: '{"active":false}' },
  ])('is never ignored when it is malformed: %j', (operation) => {
    expect(refused(operation)).toMatch(/^invalid(?:Value|Path)$/);
  });
});

describe('requests of identity providers', () => {
  it('E7 several operations with one path each', () => {
    const patched = patch(
      { op: 'Replace', path: 'displayName', value: 'B' },
      { op: 'Replace', path: 'emails[type eq "work"].value', value: 'b@example.com' },
      { op: 'Add', path: 'name.givenName', value: 'Barb' },
      { op: 'Add', path: `${ENTERPRISE_URN}:employeeNumber`, value: '7' },
    );
    expect(patched.displayName).toBe('B');
    expect(patched.attributes).toMatchObject({
      emails: [{ ...WORK, value: 'b@example.com' }, HOME],
      name: { givenName: 'Barb' },
      [ENTERPRISE_URN]: { employeeNumber: '7' },
    });
  });

  it('E8 one operation without a path, with dotted keys and URNs', () => {
    const patched = patch({
      op: 'replace',
      value: {
        'name.givenName': 'Barb',
        [`${ENTERPRISE_URN}:employeeNumber`]: '8',
        [ENTERPRISE_URN.toLowerCase()]: { Department: 'Tours' },
        'emails[type eq "home"].value': 'barb@jensen.org',
      },
    });
    expect(patched.attributes).toMatchObject({
      name: { givenName: 'Barb', familyName: 'Jensen' },
      emails: [WORK, { value: 'barb@jensen.org', type: 'home' }],
      [ENTERPRISE_URN]: { employeeNumber: '8', department: 'Tours' },
    });
  });

  it.each([
    ['manager', 'm2'],
    [`${ENTERPRISE_URN}:manager`, 'm2'],
    ['manager', [{ $ref: null, value: 'm2' }]],
    ['manager', { value: 'm2', displayName: 'ignored' }],
    ['manager.value', 'm2'],
  ])('E10 set a manager at %s as %j', (path, value) => {
    const patched = patch({ op: 'Add', path, value });
    expect(patched.attributes[ENTERPRISE_URN]).toEqual({
      employeeNumber: '701984',
      manager: { value: 'm2' },
    });
  });

  it.each(['', { value: '' }, { value: null }, [{ value: '' }]])(
    'E10 remove the manager with %j',
    (value) => {
      const patched = patch({ op: 'Replace', path: 'manager', value });
      expect(patched.attributes[ENTERPRISE_URN]).toEqual({ employeeNumber: '701984' });
    },
  );

  it('E12 set roles that contain JSON, selected by primary', () => {
    const role = '{"id":"1","value":"Engineer"}';
    const patched = patch(
      { op: 'add', path: 'roles', value: [{ value: role, primary: 'True' }] },
      { op: 'replace', path: 'roles[primary eq "True"].display', value: 'Engineer' },
    );
    expect(patched.attributes['roles']).toEqual([
      { value: role, primary: true, display: 'Engineer' },
    ]);
  });

  it('read-only values are ignored inside an object and refused as a target', () => {
    const value = { id: 'x', meta: { version: '1' }, groups: [{ value: 'g' }], schemas: [] };
    expect(patch({ op: 'replace', value })).toEqual(BABS);
    for (const path of ['id', 'meta', 'meta.created', 'groups', 'manager.displayName', 'schemas']) {
      expect(refused({ op: 'replace', path, value: 'x' }), path).toBe('mutability');
    }
    expect(refused({ op: 'remove', path: 'groups[value eq "g"]' })).toBe('mutability');
    expect(patch({ op: 'replace', path: 'password', value: 'hunter2' })).toEqual(BABS);
  });

  it('unknown attributes are ignored and wrong types are refused', () => {
    expect(patch({ op: 'add', path: 'urn:example:User:shoe', value: '42' })).toEqual(BABS);
    expect(patch({ op: 'add', value: { shoe: 42, 'urn:example': { enabled: 1 } } })).toEqual(BABS);
    expect(refused({ op: 'add', path: 'shoe', value: '42' })).toBe('invalidPath');
    expect(patch({ op: 'add', path: 'title', value: 5 }).attributes['title']).toBe('5');
    expect(refused({ op: 'add', path: 'title', value: [5] })).toBe('invalidValue');
    expect(refused({ op: 'add', path: 'emails', value: [5] })).toBe('invalidValue');
    expect(refused({ op: 'add', path: 'name', value: 'Babs' })).toBe('invalidValue');
    expect(refused({ op: 'add', path: 'emails[', value: 'x' })).toBe('invalidFilter');
    expect(refused({ op: 'add', path: 'a b', value: 'x' })).toBe('invalidPath');
  });

  it('a photo over the limit is left out, and the rest is applied', () => {
    const small = { value: 'https://x.example/p', type: 'thumbnail' };
    const large = { value: `data:image/png;base64,${'A'.repeat(20_000)}`, type: 'photo' };
    const title = { op: 'replace', path: 'title', value: 'x' };
    for (const [operation, photos] of [
      [{ op: 'add', path: 'photos', value: [large, small] }, [small]],
      [{ op: 'replace', value: { photos: [large] } }, undefined],
      [{ op: 'replace', path: 'photos[type eq "photo"].value', value: large.value }, undefined],
    ] as const) {
      expect(patch(title, operation).attributes).toMatchObject({ title: 'x' });
      expect(patch(title, operation).attributes['photos']).toEqual(photos);
    }
    const user = readUser({ userName: 'b', title: 'x', photos: [large, small] });
    expect(user.attributes).toEqual({ title: 'x', photos: [small] });
  });

  it.each([
    { op: 'replace', path: 'manager', value: {} },
    { op: 'replace', path: `${ENTERPRISE_URN}:manager`, value: [{}] },
    { op: 'replace', value: { [ENTERPRISE_URN]: { manager: {} } } },
  ])('%j removes the manager', (operation) => {
    expect(patch(operation).attributes[ENTERPRISE_URN]).toEqual({ employeeNumber: '701984' });
  });

  it.each<[object, object]>([
    [{ department: 'X' }, { department: 'X' }],
    [{ department: 'X', [ENTERPRISE_URN]: { department: 'Y' } }, { department: 'Y' }],
    [{ [`${ENTERPRISE_URN}:department`]: 'Y', department: 'X' }, { department: 'Y' }],
    [
      { manager: 'Jane', [ENTERPRISE_URN]: { manager: { value: '5' } } },
      { manager: { value: '5' } },
    ],
    [{ organization: { name: 'x' }, division: ['a', 'b'], costCenter: true }, {}],
    [{ department: 'X', Department: 'Y' }, {}],
  ])('bare names of the extension in a value count only if they fit: %j', (value, changed) => {
    const expected = { ...(BABS.attributes[ENTERPRISE_URN] as object), ...changed };
    for (const path of [undefined, USER_URN]) {
      for (const op of ['add', 'replace']) {
        const { attributes } = patch({ op, path, value });
        expect([op, path, attributes[ENTERPRISE_URN]]).toEqual([op, path, expected]);
      }
    }
  });

  it('a path that is a bare name of the extension is refused with a value that does not fit', () => {
    for (const path of ['department', 'organization', 'manager']) {
      expect(refused({ op: 'replace', path, value: ['a', 'b'] })).toBe('invalidValue');
    }
    const twice = { [ENTERPRISE_URN]: { department: 'x' }, [`${ENTERPRISE_URN}:department`]: 'y' };
    expect(refused({ op: 'replace', value: twice })).toBe('invalidValue');
  });

  it('an element with only a label is dropped', () => {
    const emptied = patch({ op: 'replace', path: 'emails[type eq "home"].value', value: '' });
    expect(emptied.attributes['emails']).toEqual([WORK]);
    const made = patch(
      { op: 'add', path: 'phoneNumbers[type eq "work"].primary', value: true },
      { op: 'add', path: 'phoneNumbers[type eq "work"].value', value: '1' },
    );
    expect(made.attributes['phoneNumbers']).toEqual([{ type: 'work', primary: true, value: '1' }]);
  });
});

describe('hostile operations', () => {
  it('cannot reach a prototype', () => {
    const hostile = JSON.parse(
      `{"__proto__": {"admin": true}, "constructor": {"prototype": {"admin": true}},
        "name": {"__proto__": {"admin": true}, "givenName": "B"}, "name.__proto__": "x",
        "emails": [{"__proto__": {"admin": true}, "value": "x@example.com"}]}`,
    ) as object;
    const patched = patch({ op: 'add', value: hostile });
    for (const path of [
      '__proto__',
      '__proto__.admin',
      'constructor.prototype.admin',
      'name.__proto__',
      'emails[type eq "work"].__proto__',
    ]) {
      expect(refused({ op: 'add', path, value: { admin: true } })).toBe('invalidPath');
    }
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined();
    expect(JSON.stringify(patched)).not.toMatch(/admin|__proto__|constructor/);
    expect(patched.attributes['name']).toEqual({ givenName: 'B', familyName: 'Jensen' });
  });

  it('cannot store text that PostgreSQL refuses, or more than the limit', () => {
    expect(refused({ op: 'add', path: 'title', value: 'a\0b' })).toBe('invalidSyntax');
    expect(refused({ op: 'add', path: 'title', value: '\ud800' })).toBe('invalidSyntax');
    expect(refused({ op: 'add', path: 'un\0known', value: 'x' })).toBe('invalidSyntax');
    expect(refused({ op: 'add', value: { title: 'x', unknown: ['\0'] } })).toBe('invalidSyntax');
    expect(refused({ op: 'add', path: 'title', value: 'x'.repeat(16_385) })).toBe('invalidValue');
    expect(refused({ op: 'add', path: 'userName', value: 'x'.repeat(513) })).toBe('invalidValue');
    const many = Array.from({ length: 101 }, (_, n) => ({ value: `v${n}` }));
    expect(refused({ op: 'add', path: 'roles', value: many })).toBe('invalidValue');
    const grown = many.slice(0, 5).map((role) => ({ ...role, display: 'x'.repeat(16_000) }));
    expect(refused({ op: 'add', path: 'roles', value: grown })).toBe('invalidValue');
  });

  it('cannot cause deep recursion', () => {
    const nested = (innermost: object) => {
      let value: unknown = innermost;
      for (let i = 0; i < 5000; i += 1) value = { [USER_URN]: value };
      return { op: 'replace', value };
    };
    expect(patch(nested({ title: 'x' }))).toEqual(BABS);
    expect(refused(nested({ active: false }))).toBe('invalidValue');
  });

  it('take time linear in the length of the request', () => {
    const roles = Array.from({ length: 100 }, (_, n) => ({ value: `${n}` }));
    const times = (howMany: number, operation: object) => [
      { op: 'add', path: 'roles', value: roles },
      ...Array.from({ length: howMany }, () => operation),
    ];
    const display = { op: 'add', path: 'roles.display', value: 'x' };
    const some = { op: 'add', path: 'roles[value ew "9" or value ew "8"].display', value: 'x' };
    const gone = {
      op: 'remove',
      path: 'roles',
      value: Array.from({ length: 100 }, () => ({ value: 'x' })),
    };
    for (const [operation, most] of [
      [display, 200],
      [some, 50],
      [gone, 1],
    ] as const) {
      patch(...times(most, operation));
      expect(refused(...times(999, operation))).toBe('tooMany');
    }
    const tooMany = Array.from({ length: 1000 }, (_, n) => ({
      op: 'add',
      path: 'roles',
      value: [{ value: `${n}` }],
    }));
    expect(refused(...tooMany)).toBe('invalidValue');
    expect(
      refused(
        { op: 'add', path: 'roles', value: roles },
        { op: 'add', path: 'roles.display', value: 'x'.repeat(1000) },
      ),
    ).toBe('invalidValue');
  });

  it('change nothing when one of them fails', () => {
    expect(
      refused(
        { op: 'replace', path: 'title', value: 'x' },
        { op: 'replace', path: 'active', value: true },
        { op: 'replace', path: 'nickName', value: true },
      ),
    ).toBe('invalidValue');
    expect(BABS.attributes['nickName']).toBe('Babs');
  });

  it('E35 end the access beside operations that cannot be applied, however many they are', () => {
    const disable = { op: 'Replace', path: 'ACTIVE', value: 'False' };
    const heavy = Array.from({ length: 1200 }, () => ({
      op: 'add',
      path: 'emails.display',
      value: 'x',
    }));
    for (const operations of [
      [disable, { op: 'replace', path: 'title', value: true }],
      [{ op: 'merge', path: 'title', value: 'x' }, disable],
      [...heavy, disable],
      [{ op: 'replace', value: { active: 'false', title: 'a', Title: 'b' } }],
      [{ op: 'replace', value: { active: 'false', [ENTERPRISE_URN]: 'x' } }],
      [disable, { op: 'remove', path: 'active' }],
      [disable, { op: 'replace', path: 'displayName', value: 'x'.repeat(513) }],
      Array.from({ length: 5 }, (_, n) => ({
        op: 'add',
        path: 'roles',
        value: [{ value: 'r', display: `${n}`.repeat(16_000) }],
      })).concat(disable as never),
    ]) {
      expect(patch(...operations).active, JSON.stringify(operations).slice(0, 200)).toBe(false);
    }
    expect(
      refused(
        disable,
        { op: 'replace', path: 'active', value: 'True' },
        { op: 'replace', path: 'title', value: true },
      ),
    ).toBe('invalidValue');
  });
});

describe('groups', () => {
  it('RFC 7644 §3.5.2: change members without reading them', () => {
    const value = [{ display: 'Babs Jensen', $ref: 'https://example.com/v2/Users/a', value: 'a' }];
    expect(patchMembers({ op: 'add', path: 'members', value }).members).toEqual([
      { kind: 'add', ids: ['a'] },
    ]);
    expect(
      patchMembers(
        { op: 'remove', path: 'members[value eq "b"]' },
        { op: 'add', path: 'members', value },
      ).members,
    ).toEqual([
      { kind: 'remove', ids: ['b'] },
      { kind: 'add', ids: ['a'] },
    ]);
    expect(patchMembers({ op: 'remove', path: 'members' }).members).toEqual([{ kind: 'clear' }]);
    expect(patchMembers({ op: 'replace', path: 'members', value }).members).toEqual([
      { kind: 'replace', ids: ['a'] },
    ]);
  });

  it.each([
    ['O12', { op: 'replace', value: { id: 'g', displayName: 'Tours' } }, { displayName: 'Tours' }],
    ['E17', { op: 'Replace', path: 'displayName', value: ' Tours ' }, { displayName: 'Tours' }],
    ['E17', { op: 'Replace', path: 'externalId', value: 'x' }, { externalId: 'x' }],
    ['E17', { op: 'Replace', value: { externalId: 'x' } }, { externalId: 'x' }],
    ['', { op: 'remove', path: 'externalId' }, { externalId: null }],
  ])('%s %j', (_, operation, set) => {
    expect(patchMembers(operation)).toMatchObject({ set, members: [] });
  });

  it.each([
    ['E18', { op: 'Add', path: 'members', value: [{ $ref: null, value: 'a' }] }, 'add', ['a']],
    ['E19', { op: 'Remove', path: 'members', value: [{ value: 'a' }] }, 'remove', ['a']],
    ['O14', { op: 'replace', path: 'members', value: [{ value: 'a' }] }, 'replace', ['a']],
    ['', { op: 'replace', value: { MEMBERS: [{ Value: 'a' }] } }, 'replace', ['a']],
    ['', { op: 'add', value: { members: { value: 'a' } } }, 'add', ['a']],
    ['', { op: 'add', path: 'members', value: ['a', { value: 'b' }, 'a'] }, 'add', ['a', 'b']],
    ['', { op: 'remove', path: 'members[value eq "a" or value eq "b"]' }, 'remove', ['a', 'b']],
  ])('%s %j', (_, operation, kind, ids) => {
    expect(patchMembers(operation).members).toEqual([{ kind, ids }]);
  });

  it.each([null, [], ''])(
    'replace with %j clears the members, add of it adds no member',
    (value) => {
      expect(patchMembers({ op: 'replace', path: 'members', value }).members).toEqual([
        { kind: 'clear' },
      ]);
      expect(patchMembers({ op: 'add', path: 'members', value }).members).toEqual([]);
    },
  );

  it('remove of an empty list removes no member', () => {
    expect(patchMembers({ op: 'remove', path: 'members', value: [] }).members).toEqual([]);
  });

  it.each(['add', 'remove', 'replace'])('%s members whose other parts are numbers', (op) => {
    const value = [{ value: 'a', display: 7, index: 0 }];
    expect(patchMembers({ op, path: 'members', value }).members).toEqual([
      { kind: op, ids: ['a'] },
    ]);
  });

  it('remove of a list with groups removes the users in it, because no group is a member', () => {
    const group = { value: 'g', type: 'Group' };
    const removed = (value: unknown) =>
      patchMembers({ op: 'remove', path: 'members', value }).members;
    expect(removed([{ value: 'a' }, group, { value: 'b', type: 'User' }])).toEqual([
      { kind: 'remove', ids: ['a', 'b'] },
    ]);
    expect(removed([group])).toEqual([]);
    for (const op of ['add', 'replace']) {
      const value = [{ value: 'a' }, group];
      expect(refusedOfGroup({ op, path: 'members', value })).toBe('invalidValue');
    }
  });

  it('remove of a list with a member that cannot be read removes the others, and names the list', () => {
    const nameless = { type: 'Group' };
    const remove = (...value: object[]) => ({ op: 'remove', path: 'members', value });
    const { members, leftOut } = patchMembers(remove({ value: 'a' }, nameless));
    expect(members).toEqual([{ kind: 'remove', ids: ['a'] }]);
    expect(leftOut.map(({ name, error }) => [name, error.scimType])).toEqual([
      ['members', 'invalidValue'],
    ]);
    expect(refusedOfGroup(remove(nameless))).toBe('invalidValue');
  });

  it.each([7, [[]], {}, { value: 7 }, 'x'.repeat(600), '\ud800', { value: ['a', 'b'] }])(
    'remove of a long list of members that cannot be read makes a few errors only: %j',
    (unreadable) => {
      const value = [...Array.from({ length: 2_000 }, () => unreadable), { value: 'a' }];
      const operations = readOperations(body({ op: 'remove', path: 'members', value }));
      const parent = Object.getPrototypeOf(ScimError) as ErrorConstructor;
      let made = 0;
      const Counted = class extends Error {
        constructor(message?: string, options?: ErrorOptions) {
          super(message, options);
          made += 1;
        }
      };
      Object.setPrototypeOf(ScimError, Counted);
      try {
        expect(patchGroup(operations).members).toEqual([{ kind: 'remove', ids: ['a'] }]);
      } finally {
        Object.setPrototypeOf(ScimError, parent);
      }
      expect(made).toBeLessThan(3);
    },
  );

  it.each([
    { op: 'add', path: 'members', value: [{ $ref: 'https://example.com/Users/a' }] },
    { op: 'add', path: 'members', value: [5] },
    { op: 'add', path: 'members', value: [{ value: 5 }] },
    { op: 'add', path: 'members', value: [{ value: 'a' }, {}] },
    { op: 'add', path: 'members', value: [[{ value: 'a' }]] },
    { op: 'remove', path: 'members', value: '' },
    { op: 'remove', path: 'members.value', value: 'a' },
    { op: 'remove', path: 'members[value eq "a"].value' },
    { op: 'remove', path: 'members[value ne "a"]' },
    { op: 'remove', path: 'members[display eq "Babs"]' },
    { op: 'remove', path: 'members[value eq "a" and value eq "b"]' },
    { op: 'remove', path: 'members[type eq "User"]' },
    { op: 'remove', path: 'members[nosuch eq "a"]' },
    { op: 'remove', path: 'members[value eq "a"' },
    { op: 'replace', path: 'members[value eq "a"]', value: { value: 'b' } },
    { op: 'remove', path: 'urn:example:Group:members' },
    { op: 'add', value: { 'members.nosuch': 'a' } },
    { op: 'add', value: { 'members.display': 'a' } },
    { op: 'replace', value: { Group: { members: [] } } },
    { op: 'replace', path: 'group', value: { members: [] } },
    { op: 'replace', path: 'displayName', value: { members: [] } },
    { op: 'replace', value: { members: [], Members: ['a'] } },
  ])('refuse members that they cannot parse: %j', (operation) => {
    expect(refusedOfGroup(operation)).toMatch(/^(invalid(?:Value|Path|Filter)|mutability)$/);
  });

  it('keep their displayName, and refuse a new id', () => {
    expect(refusedOfGroup({ op: 'remove', path: 'displayName' })).toBe('invalidValue');
    expect(refusedOfGroup({ op: 'replace', path: 'displayName', value: ' ' })).toBe('invalidValue');
    expect(refusedOfGroup({ op: 'replace', path: 'id', value: 'x' })).toBe('mutability');
  });
});
