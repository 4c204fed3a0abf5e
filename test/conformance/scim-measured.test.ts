import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import {
  actsOf,
  ENTERPRISE,
  expectScimError,
  found,
  memberIdsOf,
  patchOf,
  shown,
} from '../support/scim-requests.js';

let app: TestApp;
let tenant: ScimTenant;
beforeAll(async () => {
  app = await startTestApp();
  tenant = await addTenant(app);
});
afterAll(() => app.close());

const { address, newUser, newGroup, patch } = actsOf(() => tenant);

describe('10.17 a Replace of a part of an absent value (E24)', () => {
  const PARTS: [string, string, string, object][] = [
    ['phoneNumbers[type eq "work"].value', 'phoneNumbers', '+1 555', { value: '+1 555' }],
    ['emails[type eq "work"].value', 'emails', 'w@x.example', { value: 'w@x.example' }],
    ['addresses[type eq "work"].locality', 'addresses', 'Bonn', { locality: 'Bonn' }],
  ];

  it.each(PARTS)('10.17 creates the element of %s', async (path, attribute, value, part) => {
    const made = [{ type: 'work', ...part }];
    const aimed = await newUser();
    const withPath = await patch(`/Users/${aimed.id}`, { op: 'Replace', path, value });
    expect([withPath.status, withPath.json[attribute]]).toEqual([200, made]);
    const whole = await newUser();
    const pathless = await patch(`/Users/${whole.id}`, { op: 'Replace', value: { [path]: value } });
    expect([pathless.status, pathless.json[attribute]]).toEqual([200, made]);
    expect((await shown(tenant, 'Users', whole.id))[attribute]).toEqual(made);
  });

  it.each(PARTS)(
    '10.17 disables the user together with %s',
    async (path, attribute, value, part) => {
      const made = [{ type: 'work', ...part }];
      const operations = [
        { op: 'Replace', path, value },
        { op: 'Replace', path: 'active', value: 'False' },
      ];
      for (const body of [
        operations,
        operations.toReversed(),
        [{ op: 'Replace', value: { [path]: value, active: 'False' } }],
      ]) {
        const { id } = await newUser();
        const { status, json } = await patch(`/Users/${id}`, ...body);
        expect([status, json.active, json[attribute]]).toEqual([200, false, made]);
        expect((await shown(tenant, 'Users', id)).active).toBe(false);
      }
    },
  );

  it('10.17 does not change the elements of other types', async () => {
    const home = { type: 'home', value: '1' };
    const { id } = await newUser({ phoneNumbers: [home] });
    const path = 'phoneNumbers[type eq "work"].value';
    const { json } = await patch(`/Users/${id}`, { op: 'replace', path, value: '2' });
    expect(json.phoneNumbers).toEqual([home, { type: 'work', value: '2' }]);
  });

  it.each([
    ['emails[type eq "work"]', { value: 'w@x.example' }],
    ['emails[type ne "work"].value', 'w@x.example'],
    ['emails[type eq "work" or type eq "home"].value', 'w@x.example'],
    ['emails[value co "x"].value', 'w@x.example'],
    ['emails[value eq "old@x.example"].value', 'w@x.example'],
  ])('10.17 is noTarget for %s', async (path, value) => {
    const { id } = await newUser();
    expectScimError(await patch(`/Users/${id}`, { op: 'replace', path, value }), 400, 'noTarget');
  });
});

describe('values in the format of identity providers', () => {
  it('10.19 accepts numbers for text (E28)', async () => {
    const user = await newUser({
      externalId: 7,
      [ENTERPRISE]: { employeeNumber: 12345 },
      phoneNumbers: [{ type: 'work', value: 5551234 }],
    });
    const expected = {
      externalId: '7',
      [ENTERPRISE]: { employeeNumber: '12345' },
      phoneNumbers: [{ type: 'work', value: '5551234' }],
    };
    expect(user).toMatchObject(expected);
    const path = `${ENTERPRISE}:employeeNumber`;
    const { json } = await patch(`/Users/${user.id}`, { op: 'replace', path, value: 6.5 });
    expect(json[ENTERPRISE]).toEqual({ employeeNumber: '6.5' });
    const filter = `id eq "${user.id}" and employeeNumber eq "6.5"`;
    expect(await found(tenant, 'Users', filter)).toHaveLength(1);
    const put = { userName: 9_007_199, name: { givenName: 0 } };
    const replaced = await tenant.send('PUT', `/Users/${user.id}`, put);
    expect(replaced.json).toMatchObject({ userName: '9007199', name: { givenName: '0' } });
  });

  it('10.19 refuses a number that JSON could have rounded', async () => {
    const body = `{"userName":"${address()}","externalId":12345678901234567890}`;
    expectScimError(await tenant.send('POST', '/Users', body), 400, 'invalidValue');
  });

  it('10.19 accepts a dot after the URN of an extension (E27)', async () => {
    const boss = await newUser();
    const { id } = await newUser();
    const path = `${ENTERPRISE}.manager`;
    const aimed = await patch(`/Users/${id}`, { op: 'Add', path, value: boss.id });
    expect(aimed.json[ENTERPRISE].manager.value).toBe(boss.id);
    const value = { [`${ENTERPRISE}.department`]: 'Sales', [`${ENTERPRISE}.manager.value`]: '' };
    const pathless = await patch(`/Users/${id}`, { op: 'replace', value });
    expect(pathless.json[ENTERPRISE]).toEqual({ department: 'Sales' });
  });

  it('10.19 ignores the flag in the URL, and accepts startindex=0 and seven fraction digits (E26)', async () => {
    const user = await newUser();
    const since = '2020-01-01T00:00:00.1234567Z';
    const filter = encodeURIComponent(`id eq "${user.id}" and meta.lastModified gt "${since}"`);
    const path = `/Users?aadOptscim062020&startindex=0&count=1&filter=${filter}`;
    const { status, json } = await tenant.send('GET', path);
    expect([status, json.startIndex, json.totalResults]).toEqual([200, 1, 1]);
    const flagged = await tenant.send(
      'PATCH',
      `/Users/${user.id}?aadOptscim062020`,
      patchOf({ op: 'Replace', path: 'active', value: 'False' }),
    );
    expect([flagged.status, flagged.json.active]).toEqual([200, false]);
  });

  it('10.19 removes members[value eq "id" and type eq "User"] (E31)', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const { id } = await newGroup(a.id, b.id);
    const remove = async (filter: string) => {
      const path = `members[${filter}]`;
      return memberIdsOf((await patch(`/Groups/${id}`, { op: 'remove', path })).json);
    };
    const both = [a.id, b.id].toSorted();
    expect(await remove(`value eq "${a.id}" and type eq "Group"`)).toEqual(both);
    expect(await remove(`value eq "${a.id}" and type eq "user"`)).toEqual([b.id]);
    expect(await remove(`type eq "User" and value eq "${b.id}"`)).toEqual([]);
    const path = `members[value eq "${a.id}" and display eq "x"]`;
    expectScimError(await patch(`/Groups/${id}`, { op: 'remove', path }), 400, 'invalidFilter');
  });

  it('10.19 accepts the list of members inside an object of its name (E31)', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const { id } = await newGroup(a.id);
    const write = async (op: string, value: unknown) => {
      const answer = await patch(`/Groups/${id}`, { op, path: 'members', value });
      expect(answer.status).toBe(200);
      return memberIdsOf(answer.json);
    };
    const added = await write('add', { members: [{ value: b.id }] });
    expect(added).toEqual([a.id, b.id].toSorted());
    expect(await write('remove', { Members: [{ value: a.id }] })).toEqual([b.id]);
    expect(await write('replace', { members: [{ value: a.id }] })).toEqual([a.id]);
    for (const value of [{ members: null }, { members: [], other: 1 }, { members: 'x' }]) {
      const odd = { op: 'remove', path: 'members', value };
      expectScimError(await patch(`/Groups/${id}`, odd), 400, 'invalidValue');
    }
  });
});

describe('Microsoft’s collection of requests', () => {
  it('10.19 shows a whole list where attributes select a part of it in brackets', async () => {
    const emails = [{ type: 'work', value: 'w@x.example' }];
    const { id } = await newUser({ emails, title: 'x' });
    for (const attributes of ['emails[type eq "work"]', 'Emails[value eq "w@x.example"].value']) {
      const path = `/Users/${id}?attributes=${encodeURIComponent(attributes)}`;
      const { json } = await tenant.send('GET', path);
      expect([json.id, json.emails, json.title]).toEqual([id, emails, undefined]);
    }
  });

  it('10.19 calls the schema of users "User Account", as RFC 7643 §8.7.1 does', async () => {
    const { json } = await tenant.send(
      'GET',
      `/Schemas/urn:ietf:params:scim:schemas:core:2.0:User`,
    );
    expect(json.description).toBe('User Account');
  });
});

describe('invalid values', () => {
  it.each(['not base64!', 'MIID====', 'A', 'AAAAA', 'AA=A', 'AA-_', 'AAAA\nAAAA'])(
    '10.19 refuses the certificate %j, which is not base64',
    async (value) => {
      const x509Certificates = [{ value }];
      const body = { userName: address(), x509Certificates };
      expectScimError(await tenant.send('POST', '/Users', body), 400, 'invalidValue');
      const { id } = await newUser();
      const operation = { op: 'add', path: 'x509Certificates', value: x509Certificates };
      expectScimError(await patch(`/Users/${id}`, operation), 400, 'invalidValue');
    },
  );

  it('10.19 accepts base64 with and without its padding', async () => {
    const x509Certificates = ['AAAA', 'AA==', 'AA', 'AAA=', 'A+/'].map((value) => ({ value }));
    expect((await newUser({ x509Certificates })).x509Certificates).toEqual(x509Certificates);
  });

  it('10.19 refuses a PATCH whose schemas name another message', async () => {
    const { id } = await newUser();
    const { Operations } = patchOf({ op: 'replace', path: 'title', value: 'x' }) as never;
    const send = (schemas: unknown) =>
      tenant.send('PATCH', `/Users/${id}`, { schemas, Operations });
    const PATCH_OP = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';
    for (const schemas of [
      ['urn:ietf:params:scim:schemas:core:2.0:User'],
      [],
      'x',
      [1],
      {},
      [PATCH_OP.replace('2.0', '1.0')],
    ]) {
      expectScimError(await send(schemas), 400, 'invalidSyntax');
    }
    for (const schemas of [[PATCH_OP], [PATCH_OP.toLowerCase(), 'urn:x'], PATCH_OP, undefined]) {
      expect((await send(schemas)).status).toBe(200);
    }
  });

  it('10.19 refuses an add without a value', async () => {
    const user = await newUser();
    const group = await newGroup(user.id);
    for (const operation of [{ op: 'add' }, { op: 'Add', path: 'title' }]) {
      expectScimError(await patch(`/Users/${user.id}`, operation), 400, 'invalidValue');
    }
    const members = { op: 'add', path: 'members' };
    expectScimError(await patch(`/Groups/${group.id}`, members), 400, 'invalidValue');
    expect(memberIdsOf(await shown(tenant, 'Groups', group.id))).toEqual([user.id]);
  });

  it.each([
    'favouriteColour',
    'name.nick',
    'emails[type eq "work"].colour',
    'colours[type eq "x"].value',
    `${ENTERPRISE}:colour`,
    `${ENTERPRISE}:manager.colour`,
    'urn:ietf:params:scim:schemas:core:2.0:User:colour',
  ])('E34 refuses the unknown path %s alone, and ignores it beside others', async (path) => {
    const { id } = await newUser();
    for (const op of ['add', 'replace', 'remove']) {
      const unknown = { op, path, value: 'x' };
      expectScimError(await patch(`/Users/${id}`, unknown, unknown), 400, 'invalidPath');
      const answer = await patch(`/Users/${id}`, { op: 'add', path: 'title', value: op }, unknown);
      expect([answer.status, answer.json.title]).toEqual([200, op]);
    }
  });

  it('10.19 ignores a path under the URN of an unsupported schema, as other services do', async () => {
    const { id } = await newUser();
    const { status, json } = await patch(
      `/Users/${id}`,
      { op: 'Add', path: 'urn:ietf:params:scim:schemas:extension:other:2.0:User:tag', value: 'x' },
      { op: 'Replace', path: 'active', value: 'False' },
    );
    expect([status, json.active]).toEqual([200, false]);
  });
});

describe('10.19 a base address with a trailing slash (E30)', () => {
  it('10.19 reads, creates, changes and deletes below /scim/v2//', async () => {
    const { status, json } = await tenant.send('POST', '//Users', { userName: address() });
    expect(status).toBe(201);
    expect(json.meta.location).toMatch(/\/scim\/v2\/Users\/[0-9a-f-]{36}$/);
    const path = `//Users/${json.id}`;
    expect((await tenant.send('GET', path)).json).toEqual(json);
    const operation = { op: 'replace', path: 'active', value: false };
    expect((await tenant.send('PATCH', path, patchOf(operation))).json.active).toBe(false);
    expect((await tenant.send('DELETE', path)).status).toBe(204);
    for (const list of ['//Groups?count=1', '//Schemas', '//ServiceProviderConfig?x=//']) {
      expect((await tenant.send('GET', list)).status).toBe(200);
    }
  });

  it('10.19 requires the token there, and counts in the same bucket', async () => {
    const from = newAddress();
    const remaining: number[] = [];
    for (const path of ['/scim/v2/Users', '/scim/v2//Users', '/SCIM/V2//Users']) {
      const headers = { authorization: 'Bearer svc_scim_x', origin: '' };
      const answer = await app.client().send('GET', path, { address: from, headers });
      expectScimError(answer, 401);
      remaining.push(Number(answer.headers.get('x-ratelimit-remaining')));
    }
    const [first = 0] = remaining;
    expect(first).toBeGreaterThan(2);
    expect(remaining).toEqual([first, first - 1, first - 2]);
  });

  it('10.19 limits the size of bodies as with one slash', async () => {
    const title = 'x'.repeat(70_000);
    expectScimError(await tenant.send('POST', '//Users', { userName: address(), title }), 413);
  });

  it('10.19 allows no second slash at another place', async () => {
    for (const path of ['///Users', '/Users//', '//Users//x']) {
      expectScimError(await tenant.send('GET', path), 404);
    }
    for (const path of ['/scim//v2/Users', '/scim//v2//Users', '/scim/v2%2F/Users']) {
      const headers = { authorization: `Bearer ${tenant.token}`, origin: '' };
      const { status } = await app.client().send('GET', path, { address: newAddress(), headers });
      expect([path, status]).toEqual([path, 404]);
    }
  });
});

describe('10.19 the media type of responses', () => {
  it('10.19 has no charset, not on errors either', async () => {
    const { id } = await newUser();
    const headers = { accept: 'application/json' };
    for (const [answer, type] of [
      [await tenant.send('GET', `/Users/${id}`), 'application/scim+json'],
      [await tenant.send('GET', '/Users?count=1'), 'application/scim+json'],
      [await tenant.send('GET', '/Schemas'), 'application/scim+json'],
      [await tenant.send('POST', '/Bulk', { Operations: [] }), 'application/scim+json'],
      [await tenant.send('GET', '/Users/x'), 'application/scim+json'],
      [await tenant.send('GET', '/nothing'), 'application/scim+json'],
      [await tenant.send('PUT', '/Users'), 'application/scim+json'],
      [await tenant.send('POST', '/Users', 'x'), 'application/scim+json'],
      [await tenant.send('GET', `/Users/${id}`, undefined, headers), 'application/json'],
    ] as const) {
      expect([answer.status, answer.headers.get('content-type')]).toEqual([answer.status, type]);
    }
  });
});
