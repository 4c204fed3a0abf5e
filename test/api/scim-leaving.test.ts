import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attributesOf, USER_SCHEMA } from '@svc/scim-language';
import { mintOpaqueToken } from '#platform/crypto/opaque-token.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { rows } from '../support/rows.js';
import { atScale } from '../support/scale.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import { CORE_USER, ENTERPRISE, patchOf } from '../support/scim-requests.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

let app: TestApp;
let tenant: ScimTenant;
const publicKey = newPublicKeyLine();
beforeAll(async () => {
  app = await startTestApp();
  tenant = await addTenant(app);
});
afterAll(() => app.close());

interface Person {
  readonly id: string;
  readonly userName: string;
  readonly cookie: string;
}

/**
 * Inserts users who each have a key and a session, without the ceremonies, which other tests cover.
 */
async function newPeople(count: number): Promise<Person[]> {
  const people = Array.from({ length: count }, () => {
    const { token, hash } = mintOpaqueToken();
    const name = `${randomUUID()}@${tenant.domain}`;
    return { id: randomUUID(), key: randomUUID(), userName: name, token, hash };
  });
  const [ids, names, keys, hashes] = (['id', 'userName', 'key', 'hash'] as const).map((column) =>
    people.map((person) => person[column]),
  );
  await app.dataSource.query(
    `INSERT INTO users (id, org_id, email, user_name, scim_managed, attributes)
     SELECT id, $3, name, name, true, '{"photos": [{"value": "https://x.example/p", "type": "photo"}]}'
     FROM unnest($1::uuid[], $2::text[]) AS u (id, name)`,
    [ids, names, tenant.orgId],
  );
  await app.dataSource.query(
    `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
     SELECT key, id, uuid_send(key), '', 0, 'packed', true, 'a key' FROM unnest($1::uuid[], $2::uuid[]) AS k (id, key)`,
    [ids, keys],
  );
  await app.dataSource.query(
    `INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, amr, acr, auth_time, expires_at)
     SELECT gen_random_uuid(), hash, 'verified', id, key, '{hwk,pin,user}',
            'urn:nist:authentication:assurance-level:aal3', now(), now() + interval '8 hours'
     FROM unnest($1::uuid[], $2::uuid[], $3::bytea[]) AS s (id, key, hash)`,
    [ids, keys, hashes],
  );
  return people.map(({ id, userName, token }) => ({
    id,
    userName,
    cookie: `svc_session=${token}`,
  }));
}

/**
 * Returns the statuses of two requests in the session of a user: for the keys, and for an SSH
 * certificate.
 */
async function accessOf({ cookie }: Person): Promise<readonly number[]> {
  const options = { headers: { cookie }, address: newAddress() };
  const client = app.client();
  const [keys, certificate] = [
    await client.get('/v1/keys', options),
    await client.post('/v1/credentials/ssh', { public_key: publicKey }, options),
  ];
  return [keys.status, certificate.status];
}
const ENDED = [401, 401];

type Operation = Readonly<Record<string, unknown>>;

const LONG = 'x'.repeat(17_000);
/** Values of each JSON type. Each is wrong for some attributes. */
const VALUES: readonly unknown[] = ['x', true, 7, { value: 'x' }, [{ value: 'x' }, 5], LONG];
const OPS = ['add', 'replace', 'remove'] as const;
/** One of `EVERY` operations is tried. */
const EVERY = atScale({ small: 5, full: 1 });

/**
 * Yields every PATCH operation on every attribute of both schemas, with right and wrong values, and
 * on unknown paths of three kinds.
 */
function* everyOperation(): Generator<Operation> {
  const known = attributesOf(USER_SCHEMA).map(({ path }) => path);
  const subs = ['name.givenName', 'name', 'emails.value', 'manager.value', 'manager.displayName'];
  const unknown = [
    'mailNickname',
    'accountEnabled',
    'actve',
    'emails.colour',
    `${CORE_USER}:x`,
    `${ENTERPRISE}:y`,
    'urn:vendor:2.0:User:badge',
    'urn:vendor:2.0:User:active',
    'urn:vendor:2.0:User',
    'meta.created',
    'groups.value',
    'active.value',
    'a b',
    'emails[',
  ];
  let turn = 0;
  for (const path of [...known, ...subs, ...unknown]) {
    if (path === 'active') continue;
    for (const op of OPS) {
      const value = VALUES[(turn += 1) % VALUES.length];
      yield { op, path, value };
      yield { op, value: { [path]: value } };
    }
  }
  for (const filter of ['type eq "work"', 'colour eq "x"', 'type', 'value co "x"']) {
    for (const list of ['emails', 'photos', 'addresses', 'roles', 'groups', 'title', 'manager']) {
      for (const end of ['', '.value', '.colour']) {
        const op = OPS[(turn += 1) % 3];
        yield { op, path: `${list}[${filter}]${end}`, value: VALUES[turn % VALUES.length] };
      }
    }
  }
  yield { op: 'remove' };
  yield { op: 'add' };
  yield { op: 'merge', path: 'title', value: 'x' };
  yield { op: 'replace', path: 5, value: 'x' };
  yield { op: 'replace', value: 'x' };
  yield { op: 'replace', value: { title: 'a', Title: 'b' } };
  yield { op: 'remove', path: 'active' };
  yield { op: 'replace', path: 'active', value: 'disabled' };
}

describe('E34, E35 active: "False" ends the access of a leaver', () => {
  it('beside every operation on every attribute of both schemas, right or wrong, known or unknown', async () => {
    const cases = [...everyOperation()].filter((_, index) => index % EVERY === 0);
    const people = await newPeople(cases.length + 1);
    const [stays] = people.splice(-1);
    expect(cases.length).toBeGreaterThan(250 / EVERY);
    const requests = cases.map((operation, index) => {
      const disable = { op: 'Replace', path: 'active', value: 'False' };
      const both = index % 4 < 2 ? [disable, operation] : [operation, disable];
      return { method: 'PATCH', path: `/Users/${people[index]?.id}`, data: patchOf(...both) };
    });
    const isShort = (request: object) => JSON.stringify(request).length < 1000;
    const single = requests.filter((request, index) => index % 4 === 0 || !isShort(request));
    const failed: unknown[] = [];
    for (const { method, path, data } of single) {
      const { status, json } = await tenant.send(method, path, data);
      if (status !== 200 || json.active !== false) failed.push([data, status, json]);
    }
    const rest = requests.filter((request) => !single.includes(request));
    for (let from = 0; from < rest.length; from += 100) {
      const chunk = rest.slice(from, from + 100);
      const { json } = await tenant.send('POST', '/Bulk', { Operations: chunk });
      for (const [index, outcome] of json.Operations.entries()) {
        if (outcome.status !== '200') failed.push([chunk[index], outcome]);
      }
    }
    // Requests for all users would take long, so that one of 12 sends them. The rows of all are
    // checked below.
    for (const person of people.filter((_, index) => index % 12 === 0)) {
      const access = await accessOf(person);
      if (access.join() !== ENDED.join()) failed.push([person, access]);
    }
    const ids = people.map(({ id }) => id);
    const left = await rows(
      app.dataSource,
      'SELECT id FROM users u WHERE id = ANY ($1) AND (active OR EXISTS (SELECT FROM sessions s WHERE s.user_id = u.id))',
      [ids],
    );
    expect([cases.length, left.length]).toEqual([cases.length, 0]);
    expect(failed).toEqual([]);
    expect(stays && (await accessOf(stays))).toEqual([200, 200]);
  });

  it('beside every value of every attribute in a PUT', async () => {
    const paths = attributesOf(USER_SCHEMA).map(({ path }) => path);
    const names = [...paths, 'userName', 'accountEnabled', 'urn:vendor:2.0:User:active', 'User'];
    const bodies = names
      .filter((path) => path !== 'active')
      .map((path, index) => ({ [path]: VALUES[index % VALUES.length] }));
    const extra = [
      { userName: ' ' },
      { [ENTERPRISE]: 'x' },
      { User: { active: true } },
      { Title: 1, title: 2 },
    ];
    const cases = [...bodies, ...extra];
    const people = await newPeople(cases.length);
    for (const [index, body] of cases.entries()) {
      const person = people[index];
      if (!person) throw new Error('too few people');
      const whole = { userName: person.userName, active: 'False', ...body };
      const answer = await tenant.send('PUT', `/Users/${person.id}`, whole);
      expect([body, answer.status, answer.json.active]).toEqual([body, 200, false]);
      expect([body, await accessOf(person)]).toEqual([body, ENDED]);
    }
  });

  it('beside a userName that another user has, in PATCH, PUT and bulk, and beside a manager that bulk did not make', async () => {
    const [taken, a, b, c, d] = (await newPeople(5)) as [Person, Person, Person, Person, Person];
    const { userName } = taken;
    const disable = { op: 'replace', value: { active: false, userName } };
    const put = { userName, active: false };
    const bulk = [
      { method: 'PUT', path: `/Users/${c.id}`, data: put },
      {
        method: 'PATCH',
        path: `/Users/${d.id}`,
        data: patchOf(
          { op: 'add', path: 'manager', value: 'bulkId:none' },
          { op: 'replace', path: 'active', value: 'false' },
        ),
      },
    ];
    const answers = [
      await tenant.send('PATCH', `/Users/${a.id}`, patchOf(disable)),
      await tenant.send('PUT', `/Users/${b.id}`, put),
    ];
    const { json } = await tenant.send('POST', '/Bulk', { Operations: bulk });
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(answers.map((answer) => answer.json.userName)).toEqual([a.userName, b.userName]);
    expect(json.Operations.map(({ status }: { status: string }) => status)).toEqual(['200', '200']);
    for (const person of [a, b, c, d]) expect(await accessOf(person)).toEqual(ENDED);
    expect(await accessOf(taken)).toEqual([200, 200]);
  });

  it('is 412 with a stale If-Match, and changes nothing', async () => {
    const [person] = (await newPeople(1)) as [Person];
    const both = patchOf(
      { op: 'replace', path: 'active', value: false },
      { op: 'replace', path: 'title', value: true },
    );
    const stale = { 'if-match': 'W/"0"' };
    const answer = await tenant.send('PATCH', `/Users/${person.id}`, both, stale);
    expect(answer.status).toBe(412);
    expect(await accessOf(person)).toEqual([200, 200]);
  });

  it('names what it left out in its audit event and under security', async () => {
    const [person] = (await newPeople(1)) as [Person];
    const operations = patchOf(
      { op: 'replace', path: 'active', value: 'FALSE' },
      { op: 'replace', path: 'emails[type eq "home"]', value: { value: 'x' } },
      { op: 'replace', path: 'nickName', value: 'Lea' },
    );
    const from = app.log.length;
    await tenant.send('PATCH', `/Users/${person.id}`, operations);
    const [event] = await rows(
      app.dataSource,
      "SELECT details, actor_id FROM audit_events WHERE type = 'scim_operation' AND subject_id = $1",
      [person.id],
    );
    const leftOut = [{ name: 'emails', reason: 'no_target' }];
    expect(event).toMatchObject({ details: { left_out: leftOut, operation: 'update' } });
    expect(app.log.slice(from).join('\n')).toMatch(/security.*left out|left out.*security/s);
    const { json } = await tenant.send('GET', `/Users/${person.id}`);
    expect(json).toMatchObject({ active: false, nickName: 'Lea' });
  });
});

/** Returns JSON in which each `@` is replaced by text that cannot be stored. */
const jsonWith = (json: object, bad: string) => JSON.stringify(json).replaceAll('@', bad);

describe('E35 beside characters that cannot be stored, and deep nesting', () => {
  const BAD = ['\\ud83d', '\\udc00', '\\u0000', 'a\\u0000b'] as const;
  /**
   * Returns JSON in which each value `"@"` is replaced by an object that is nested `levels` deep.
   */
  const deep = (json: object, levels: number) =>
    JSON.stringify(json).replaceAll('"@"', `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`);
  const leftOutOf = async (id: string) => {
    const [event] = await rows<{ details: { left_out?: { name: string; reason: string }[] } }>(
      app.dataSource,
      "SELECT details FROM audit_events WHERE type = 'scim_operation' AND details ->> 'resource_id' = $1 ORDER BY id DESC LIMIT 1",
      [id],
    );
    return event?.details.left_out?.map(({ name }) => name);
  };

  it('a PUT or PATCH with active: false ends access, and names what it left out', async () => {
    const operation = (rest: object) =>
      patchOf({ op: 'replace', path: 'active', value: false }, rest);
    const cases: readonly (readonly [string, object, readonly string[]])[] = [
      ['PUT', { displayName: 'abc@', active: false }, ['displayName']],
      ['PUT', { active: 'False', unknown: ['@'], 'n@': 1 }, ['unknown', 'n']],
      ['PUT', { active: false, [ENTERPRISE]: { department: '@', 'x@': 1 } }, ['department', 'x']],
      ['PUT', { active: false, emails: [{ value: 'a@b.example' }], id: '@' }, ['emails', 'id']],
      ['PATCH', operation({ op: 'add', path: 'title', value: '@' }), ['title']],
      ['PATCH', operation({ op: 'add', path: 'nick@Name', value: 'x' }), ['nick']],
      ['PATCH', operation({ op: 'add', path: 'unknown', value: { a: '@' } }), ['unknown']],
      ['PATCH', operation({ op: 'replace', value: { 'x@': 1, title: '@' } }), ['x', 'title']],
      ['PATCH', operation({ op: 'me@', path: 'title@' }), ['title']],
      [
        'PATCH',
        operation({ op: 'add', path: 'emails[type eq "@"].value', value: 'x' }),
        ['emails'],
      ],
    ];
    const people = await newPeople(cases.length * BAD.length);
    for (const [index, person] of people.entries()) {
      const [method, body, names] = cases[Math.floor(index / BAD.length)] ?? cases[0] ?? [];
      const bad = BAD[index % BAD.length] ?? '';
      const json = jsonWith({ ...body }, bad);
      const answer = await tenant.send(method ?? '', `/Users/${person.id}`, json);
      expect([json, answer.status, answer.json.active]).toEqual([json, 200, false]);
      const leftOut = (await leftOutOf(person.id)) ?? [];
      const isNamed = (name: string) => leftOut.some((each) => each.includes(name));
      expect([json, leftOut, names?.every(isNamed)]).toEqual([json, leftOut, true]);
      expect(leftOut.length).toBe(names?.length);
    }
    for (const person of people.slice(0, 2)) expect(await accessOf(person)).toEqual(ENDED);
  });

  it('a value that is nested too deeply is left out, and does not keep the access', async () => {
    const [a, b, c] = (await newPeople(3)) as [Person, Person, Person];
    const operations = [
      { op: 'replace', value: { x: '@' } },
      { op: 'replace', path: 'active', value: false },
    ];
    const bodies = [
      ['PUT', a, deep({ active: false, x: '@' }, 40)],
      ['PATCH', b, deep({ Operations: operations }, 9000)],
      ['PUT', c, deep({ active: false, title: '@' }, 31)],
    ] as const;
    for (const [method, { id }, body] of bodies) {
      const answer = await tenant.send(method, `/Users/${id}`, body);
      expect([answer.status, answer.json.active]).toEqual([200, false]);
    }
    expect(await Promise.all([a, b, c].map(({ id }) => leftOutOf(id)))).toEqual([
      ['x'],
      ['x'],
      ['title'],
    ]);
    const [stays] = (await newPeople(1)) as [Person];
    for (const body of [
      { title: 'x', x: '@' },
      { active: true, x: '@' },
    ]) {
      const answer = await tenant.send('PUT', `/Users/${stays.id}`, deep(body, 40));
      expect([answer.status, answer.json.scimType]).toEqual([400, 'invalidSyntax']);
    }
  });

  it('a removal of members, and a PUT without members, ends the memberships', async () => {
    const [leaver] = (await newPeople(1)) as [Person];
    const newGroup = async () => {
      const body = { displayName: randomUUID(), members: [{ value: leaver.id }] };
      return (await tenant.send('POST', '/Groups', body)).json as { id: string };
    };
    const remove = { op: 'remove', path: `members[value eq "${leaver.id}"]` };
    const list = { op: 'remove', path: 'members', value: [{ value: leaver.id, display: '@' }] };
    for (const bad of BAD) {
      for (const [method, body, names] of [
        ['PATCH', patchOf(remove, { op: 'replace', path: 'displayName', value: 'a@' }), 1],
        ['PATCH', patchOf({ op: 'replace', value: { 'x@': 1 } }, remove), 1],
        ['PATCH', patchOf(list), 0],
        ['PUT', { displayName: 'a@' }, 1],
        ['PUT', { displayName: randomUUID(), unknown: '@' }, 1],
      ] as const) {
        const { id } = await newGroup();
        const answer = await tenant.send(method, `/Groups/${id}`, jsonWith(body, bad));
        const json = jsonWith(body, bad);
        expect([json, answer.status, answer.json.members]).toEqual([json, 200, undefined]);
        expect([json, (await leftOutOf(id))?.length ?? 0]).toEqual([json, names]);
        if (method === 'PUT') {
          const again = await tenant.send(method, `/Groups/${id}`, json);
          expect([json, again.status]).toEqual([json, 400]);
        }
      }
    }
  });

  it('one operation of a bulk request does not stop the others', async () => {
    for (const bad of BAD) {
      const [a, b, c] = (await newPeople(3)) as [Person, Person, Person];
      const disable = patchOf({ op: 'replace', value: { active: 'False', x: '@' } });
      const method = 'POST';
      const operations = [
        { method, path: '/Users', bulkId: 'x', data: { userName: 'x@' } },
        { method, path: '/Users', bulkId: 'y@', data: { 'x@': 1, userName: randomUUID() } },
        { method: 'DE@', path: '/Users/@' },
        { method: 'DELETE', path: `/Users/${a.id}` },
        { method: 'PATCH', path: `/Users/${b.id}`, data: disable, version: '@' },
        { method: 'PATCH', path: `/Users/${b.id}`, data: disable },
        { method: 'PUT', path: `/Users/${c.id}`, data: { active: false, title: '@' } },
      ];
      const answer = await tenant.send('POST', '/Bulk', jsonWith({ Operations: operations }, bad));
      expect(answer.status).toBe(200);
      const statuses = answer.json.Operations.map(({ status }: { status: string }) => status);
      expect(statuses).toEqual(['400', '400', '400', '204', '412', '200', '200']);
      for (const { id } of [b, c]) {
        expect((await tenant.send('GET', `/Users/${id}`)).json.active).toBe(false);
      }
      expect((await tenant.send('GET', `/Users/${a.id}`)).status).toBe(404);
    }
    const kept = await rows(
      app.dataSource,
      "SELECT count(*)::int AS n FROM scim_refusals WHERE token_id = $1 AND resource_type = 'User'",
      [tenant.tokenId],
    );
    expect(kept[0]?.['n']).toBeGreaterThan(0);
    expect(app.log.filter((line) => /is not recorded|"level":(50|60)/.test(line))).toEqual([]);
  });
});

describe('E34 a name that may mean active', () => {
  const LOOKALIKES: Readonly<Record<string, unknown>> = {
    accountEnabled: 'False',
    actve: false,
    suspended: true,
    isActive: 'true',
    LOCKED: 'TRUE',
    disabled: true,
    [`${CORE_USER}:accountStatus`]: false,
    [`${ENTERPRISE}:enabled`]: 'false',
  };

  it.each(Object.entries(LOOKALIKES))(
    '%s: %j is 400 without active, and nothing is applied',
    async (name, value) => {
      const [person] = (await newPeople(1)) as [Person];
      const title = { op: 'add', path: 'title', value: 'lost' };
      for (const operations of [
        [{ op: 'replace', path: name, value }],
        [title, { op: 'replace', path: name, value }],
        [{ op: 'replace', value: { title: 'lost', [name]: value } }],
      ]) {
        const answer = await tenant.send('PATCH', `/Users/${person.id}`, patchOf(...operations));
        expect([operations, answer.status]).toEqual([operations, 400]);
      }
      const put = { userName: person.userName, title: 'lost', [name]: value };
      expect((await tenant.send('PUT', `/Users/${person.id}`, put)).status).toBe(400);
      const { json } = await tenant.send('GET', `/Users/${person.id}`);
      expect([json.active, json.title]).toEqual([true, undefined]);

      const beside = [
        { op: 'replace', path: name, value },
        { op: 'replace', path: 'active', value: 'True' },
        title,
      ];
      const answer = await tenant.send('PATCH', `/Users/${person.id}`, patchOf(...beside));
      expect([answer.status, answer.json.title]).toEqual([200, 'lost']);
    },
  );

  it('is any text where the value is no boolean, and every name under a foreign URN', async () => {
    const [person] = (await newPeople(1)) as [Person];
    const title = { op: 'add', path: 'title', value: 'kept' };
    for (const operation of [
      { op: 'replace', path: 'employmentStatus', value: 'on leave' },
      { op: 'replace', path: 'urn:vendor:2.0:User:accountEnabled', value: 'False' },
      { op: 'replace', value: { 'urn:vendor:2.0:User': { suspended: true } } },
    ]) {
      const answer = await tenant.send('PATCH', `/Users/${person.id}`, patchOf(title, operation));
      expect([operation, answer.status]).toEqual([operation, 200]);
    }
    const alone = patchOf({
      op: 'replace',
      path: 'urn:vendor:2.0:User:accountEnabled',
      value: false,
    });
    expect((await tenant.send('PATCH', `/Users/${person.id}`, alone)).status).toBe(200);
  });

  it.each([
    ['mailNickname', 'invalidPath'],
    ['meta.created', 'mutability'],
    ['groups', 'mutability'],
  ])('%s is 400 %s alone, and ignored beside an understood operation', async (path, scimType) => {
    const [person] = (await newPeople(1)) as [Person];
    const unknown = { op: 'replace', path, value: 'x' };
    const alone = await tenant.send('PATCH', `/Users/${person.id}`, patchOf(unknown));
    expect([alone.status, alone.json.scimType]).toEqual([400, scimType]);
    const title = { op: 'replace', path: 'title', value: 'x' };
    const beside = await tenant.send('PATCH', `/Users/${person.id}`, patchOf(unknown, title));
    expect([beside.status, beside.json.title]).toEqual([200, 'x']);
  });
});

describe('E35 a removal of members', () => {
  const newGroup = async (...ids: string[]) => {
    const members = ids.map((value) => ({ value }));
    const { json } = await tenant.send('POST', '/Groups', { displayName: randomUUID(), members });
    return json as { id: string; displayName: string };
  };
  const membersOf = async (id: string) => {
    const { json } = await tenant.send('GET', `/Groups/${id}`);
    return ((json.members ?? []) as { value: string }[]).map(({ value }) => value);
  };

  it('is done beside every operation that cannot be applied', async () => {
    const [leaver, stays] = (await newPeople(2)) as [Person, Person];
    const other = await newGroup();
    const bad: readonly Operation[] = [
      { op: 'replace', path: 'displayName', value: '' },
      { op: 'replace', path: 'displayName', value: other.displayName },
      { op: 'remove', path: 'displayName' },
      { op: 'replace', value: { displayName: 'a', DisplayName: 'b' } },
      { op: 'add', path: 'members', value: [{ value: 5 }] },
      { op: 'add', path: 'members', value: [{ value: other.id }] },
      { op: 'add', path: 'members', value: [{ value: randomUUID() }] },
      { op: 'replace', path: 'members[value eq "x"]', value: {} },
      { op: 'remove', path: 'members[display eq "x"]' },
      { op: 'remove', path: 'member', value: [] },
      { op: 'replace', path: 'id', value: 'x' },
      { op: 'replace', path: 'mailNickname', value: 'x' },
      { op: 'replace', path: 'urn:vendor:2.0:Group:members', value: [] },
      { op: 'merge' },
    ];
    const removals: readonly Operation[] = [
      { op: 'remove', path: `members[value eq "${leaver.id}"]` },
      { op: 'Remove', path: 'members', value: [{ value: leaver.id }] },
    ];
    for (const [index, operation] of bad.entries()) {
      const { id } = await newGroup(leaver.id, stays.id);
      const removal = removals[index % 2] ?? {};
      const both = patchOf(...(index % 3 === 0 ? [removal, operation] : [operation, removal]));
      const bulk = { method: 'PATCH', path: `/Groups/${id}`, data: both };
      const answer = await (index % 4 === 3
        ? tenant.send('POST', '/Bulk', { Operations: [bulk] })
        : tenant.send('PATCH', `/Groups/${id}`, both));
      expect([operation, answer.status, answer.text]).toEqual([operation, 200, expect.any(String)]);
      expect([operation, await membersOf(id)]).toEqual([operation, [stays.id]]);
    }
  });

  it.each([
    { value: 5 },
    {},
    null,
    7,
    { value: ['a'] },
    { value: 'x'.repeat(600) },
    { value: '\0' },
  ])(
    'by a list is done beside a member that cannot be read, and names what it left out: %j',
    async (bad) => {
      const [leaver, stays] = (await newPeople(2)) as [Person, Person];
      const { id } = await newGroup(leaver.id, stays.id);
      const remove = (...value: readonly unknown[]) =>
        tenant.send('PATCH', `/Groups/${id}`, patchOf({ op: 'remove', path: 'members', value }));
      const alone = await remove(bad);
      expect([alone.status, (await membersOf(id)).length]).toEqual([400, 2]);
      const answer = await remove(bad, { value: leaver.id });
      expect([answer.status, await membersOf(id)]).toEqual([200, [stays.id]]);
      const [event] = await rows<{ left_out: { name: string }[] }>(
        app.dataSource,
        "SELECT details -> 'left_out' AS left_out FROM audit_events WHERE type = 'scim_operation' AND details ->> 'resource_id' = $1 ORDER BY id DESC LIMIT 1",
        [id],
      );
      expect(event?.left_out.map(({ name }) => name)).toEqual(['members']);
    },
  );

  it('by a PUT without members is done beside a value that cannot be applied, if the group has members', async () => {
    const [leaver] = (await newPeople(1)) as [Person];
    const other = await newGroup();
    for (const bad of [
      { displayName: other.displayName },
      { displayName: 'x'.repeat(600) },
      { displayName: true },
      { displayName: '' },
      { displayName: randomUUID(), externalId: true },
    ]) {
      const group = await newGroup(leaver.id);
      const put = await tenant.send('PUT', `/Groups/${group.id}`, bad);
      expect([bad, put.status]).toEqual([bad, 200]);
      expect(await membersOf(group.id)).toEqual([]);
      const again = await tenant.send('PUT', `/Groups/${group.id}`, bad);
      expect([bad, again.status]).toEqual([bad, bad.displayName === other.displayName ? 409 : 400]);
    }
  });

  it('by a PUT is 400 where another name may be that of the members', async () => {
    const [person] = (await newPeople(1)) as [Person];
    const { id, displayName } = await newGroup(person.id);
    for (const name of [
      'memberList',
      'groupMembers',
      `urn:ietf:params:scim:schemas:core:2.0:Group:member`,
    ]) {
      const value = [{ value: person.id }];
      const put = await tenant.send('PUT', `/Groups/${id}`, { displayName, [name]: value });
      const patch = patchOf(
        { op: 'replace', path: 'displayName', value: 'x' },
        { op: 'remove', path: name },
      );
      expect([
        name,
        put.status,
        (await tenant.send('PATCH', `/Groups/${id}`, patch)).status,
      ]).toEqual([name, 400, 400]);
    }
    expect(await membersOf(id)).toEqual([person.id]);
  });
});
