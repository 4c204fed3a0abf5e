import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UsersRepository } from '../../src/domain/directory/users.repository.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { rows } from '../support/rows.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import {
  actsOf,
  ENTERPRISE,
  expectScimError,
  found,
  memberIdsOf,
  shown,
  withMembersLocked,
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
const base = () => `${app.baseUrl}/scim/v2`;
const userOf = (id: string) => shown(tenant, 'Users', id);
const groupOf = (id: string) => shown(tenant, 'Groups', id);

/**
 * Returns the entity tag of a resource. The `ETag` header, `meta.version` and the lists must agree
 * on it.
 */
async function tagOf(type: 'Users' | 'Groups', id: string): Promise<string> {
  const answer = await tenant.send('GET', `/${type}/${id}`);
  const tag = answer.headers.get('etag') ?? '';
  expect(tag).toMatch(/^W\/"[^"]+"$/);
  expect(answer.json.meta.version).toBe(tag);
  for (const more of [{}, { attributes: 'meta' }, { excludedAttributes: 'groups,members' }]) {
    const query = withQuery(`/${type}`, { filter: `id eq "${id}"`, ...more });
    expect((await tenant.send('GET', query)).json.Resources[0].meta.version).toBe(tag);
  }
  return tag;
}

/**
 * Expects that an action changes the entity tag of a resource, and that only the new tag matches in
 * `If-None-Match` and `If-Match`.
 */
async function expectNewTag(
  type: 'Users' | 'Groups',
  id: string,
  act: () => Promise<unknown>,
): Promise<void> {
  const before = await tagOf(type, id);
  await act();
  const after = await tagOf(type, id);
  expect(after).not.toBe(before);
  const path = `/${type}/${id}`;
  const known = (tag: string) => tenant.send('GET', path, undefined, { 'if-none-match': tag });
  expect([(await known(before)).status, (await known(after)).status]).toEqual([200, 304]);
  const operation = { Operations: [{ op: 'replace', path: 'externalId', value: randomUUID() }] };
  const write = (tag: string) => tenant.send('PATCH', path, operation, { 'if-match': tag });
  expect([(await write(before)).status, (await write(after)).status]).toEqual([412, 200]);
}

const withManager = (id: string) => newUser({ [ENTERPRISE]: { manager: { value: id } } });
const rename = (id: string, displayName: string) =>
  patch(`/Users/${id}`, { op: 'replace', path: 'displayName', value: displayName });

describe('10.19 the entity tag of a user', () => {
  it('10.19 changes when the user joins or leaves a group', async () => {
    const { id } = await newUser();
    const group = await newGroup();
    const member = [{ value: id }];
    await expectNewTag('Users', id, () =>
      patch(`/Groups/${group.id}`, { op: 'add', path: 'members', value: member }),
    );
    await expectNewTag('Users', id, () =>
      patch(`/Groups/${group.id}`, { op: 'remove', path: 'members', value: member }),
    );
  });

  it('10.19 changes when a group of the user is renamed or deleted', async () => {
    const { id } = await newUser();
    const group = await newGroup(id);
    const path = `/Groups/${group.id}`;
    await expectNewTag('Users', id, () =>
      patch(path, { op: 'replace', path: 'displayName', value: randomUUID() }),
    );
    await expectNewTag('Users', id, () => tenant.send('DELETE', path));
  });

  it('10.19 changes when the manager of the user is renamed or deleted', async () => {
    const boss = await newUser({ displayName: 'Old' });
    const { id } = await withManager(boss.id);
    await expectNewTag('Users', id, () => rename(boss.id, 'New'));
    await expectNewTag('Users', id, () => tenant.send('DELETE', `/Users/${boss.id}`));
  });

  it('10.19 covers every attribute, also where fewer are requested', async () => {
    const boss = await newUser({ displayName: 'B' });
    const { id } = await withManager(boss.id);
    await newGroup(id);
    const tags = await Promise.all(
      ['', '?attributes=userName', '?excludedAttributes=groups'].map(async (query) =>
        (await tenant.send('GET', `/Users/${id}${query}`)).headers.get('etag'),
      ),
    );
    expect(new Set(tags).size).toBe(1);
  });
});

describe('10.19 the entity tag of a group', () => {
  it('10.19 changes when a member joins, leaves, is deleted or is renamed', async () => {
    const [a, b] = await Promise.all([newUser({ displayName: 'A' }), newUser()]);
    const { id } = await newGroup(b.id);
    const value = [{ value: a.id }];
    const act = (op: string) => () => patch(`/Groups/${id}`, { op, path: 'members', value });
    await expectNewTag('Groups', id, act('add'));
    await expectNewTag('Groups', id, () => rename(a.id, 'Other'));
    await expectNewTag('Groups', id, act('remove'));
    await expectNewTag('Groups', id, () => tenant.send('DELETE', `/Users/${b.id}`));
    expect(memberIdsOf(await groupOf(id))).toEqual([]);
  });

  it('10.19 is computed without loading its members', async () => {
    const { id } = await newUser();
    const group = await newGroup(id);
    const path = `/Groups/${group.id}?excludedAttributes=members`;
    const answer = await withMembersLocked(app, () => tenant.send('GET', path));
    expect(answer.headers.get('etag')).toBe(await tagOf('Groups', group.id));
  });

  it('10.19 is unchanged when a member changes but keeps the display name', async () => {
    const { id } = await newUser();
    const group = await newGroup(id);
    const before = await tagOf('Groups', group.id);
    await patch(`/Users/${id}`, { op: 'replace', path: 'title', value: 'x' });
    expect(await tagOf('Groups', group.id)).toBe(before);
  });

  it('10.19 changes once for each of 20 members of two groups who are deleted at once', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, async () => (await newUser()).id));
    const groups = await Promise.all([newGroup(...ids), newGroup(...ids.toReversed())]);
    const deletions = ids.map((id: string) => tenant.send('DELETE', `/Users/${id}`));
    const statuses = (await Promise.all(deletions)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([204]));
    const counted = await rows<{ version: string }>(
      app.dataSource,
      'SELECT version FROM group_member_versions WHERE group_id = ANY ($1::uuid[])',
      [groups.map(({ id }) => id)],
    );
    expect(counted).toEqual([{ version: '20' }, { version: '20' }]);
  });
});

describe('10.19 a write that changes nothing (E33)', () => {
  const auditRows = async (id: string) =>
    (
      await rows(
        app.dataSource,
        `SELECT 1 FROM audit_events WHERE type = 'scim_operation' AND details ->> 'resource_id' = $1`,
        [id],
      )
    ).length;

  /** Expects that a write returns the resource unchanged, and writes no audit event. */
  async function expectNoChange(
    type: 'Users' | 'Groups',
    id: string,
    method: string,
    body: object,
  ): Promise<void> {
    const [before, audited] = [await shown(tenant, type, id), await auditRows(id)];
    const answer = await tenant.send(method, `/${type}/${id}`, body);
    expect([answer.status, answer.json]).toEqual([200, before]);
    expect([await shown(tenant, type, id), await auditRows(id)]).toEqual([before, audited]);
  }

  it('10.19 changes neither lastModified nor version of a user', async () => {
    const boss = await newUser({ displayName: 'B' });
    const user = await newUser({
      externalId: 'x',
      displayName: 'D',
      name: { givenName: 'G' },
      emails: [{ value: address(), type: 'work', primary: true }],
      [ENTERPRISE]: { manager: { value: boss.id }, department: 'S' },
    });
    await newGroup(user.id);
    const { meta: _, ...whole } = await userOf(user.id);
    await expectNoChange('Users', user.id, 'PUT', whole);
    for (const operations of [
      [{ op: 'replace', path: 'active', value: 'True' }],
      [{ op: 'replace', value: { id: user.id, displayName: 'D' } }],
      [{ op: 'add', path: 'emails', value: whole.emails }],
      [{ op: 'replace', path: `${ENTERPRISE}:manager`, value: boss.id }],
      [{ op: 'remove', path: 'title' }],
      [
        { op: 'replace', path: 'title', value: 'x' },
        { op: 'remove', path: 'title' },
      ],
      [{ op: 'replace', path: 'password', value: 'x' }],
    ]) {
      await expectNoChange('Users', user.id, 'PATCH', { Operations: operations });
    }
  });

  it('10.19 changes neither lastModified nor version of a group', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const { id, displayName } = await newGroup(a.id);
    const members = [{ value: a.id }];
    await expectNoChange('Groups', id, 'PUT', { displayName, members });
    for (const operation of [
      { op: 'replace', value: { id, displayName } },
      { op: 'add', path: 'members', value: members },
      { op: 'replace', path: 'members', value: members },
      { op: 'remove', path: 'members', value: [{ value: b.id }] },
      { op: 'remove', path: `members[value eq "${b.id}"]` },
      { op: 'remove', path: 'externalId' },
    ]) {
      await expectNoChange('Groups', id, 'PATCH', { Operations: [operation] });
    }
  });

  it('10.19 may make a user an admin, which SCIM does not show', async () => {
    const { id } = await newUser();
    const before = await userOf(id);
    const users = app.nest.get(UsersRepository, { strict: false });
    await users.setAdmin(app.dataSource.manager, { id, orgId: tenant.orgId }, true);
    expect(await userOf(id)).toEqual(before);
  });

  it('10.19 is still refused under the entity tag of another version', async () => {
    const { id } = await newUser({ title: 'x' });
    const body = { Operations: [{ op: 'replace', path: 'title', value: 'x' }] };
    const headers = { 'if-match': 'W/"7"' };
    expectScimError(await tenant.send('PATCH', `/Users/${id}`, body, headers), 412);
  });
});

describe('10.19 references (E32)', () => {
  it('10.19 are existing addresses', async () => {
    const boss = await newUser({ displayName: 'The "Boss"' });
    const { id } = await withManager(boss.id);
    const group = await newGroup(id);
    const user = await userOf(id);
    expect(user[ENTERPRISE].manager).toEqual({
      value: boss.id,
      $ref: `${base()}/Users/${boss.id}`,
      displayName: 'The "Boss"',
    });
    expect(user.groups).toEqual([
      {
        value: group.id,
        $ref: `${base()}/Groups/${group.id}`,
        display: group.displayName,
        type: 'direct',
      },
    ]);
    const [member] = (await groupOf(group.id)).members;
    expect(member.$ref).toBe(`${base()}/Users/${id}`);
    for (const $ref of [user[ENTERPRISE].manager.$ref, user.groups[0].$ref, member.$ref]) {
      const path = ($ref as string).slice(base().length);
      expect((await tenant.send('GET', path)).json.meta.location).toBe($ref);
    }
    expect(await found(tenant, 'Users', `id eq "${id}"`)).toEqual([user]);
  });

  it('10.19 are absent for a manager who is not a user of the organization', async () => {
    const other = await addTenant(app);
    const theirs = await other.send('POST', '/Users', { userName: `a@${other.domain}` });
    for (const value of [theirs.json.id, randomUUID(), '26118915', "' || '1"]) {
      const $ref = 'https://elsewhere.example/Users/1';
      const { id } = await newUser({
        [ENTERPRISE]: { manager: { value, $ref, displayName: 'X' } },
      });
      expect((await userOf(id))[ENTERPRISE]).toEqual({ manager: { value } });
    }
  });

  it('10.19 are not added to plain text', async () => {
    const nickName = '"$ref": "../Users/1"\\"$ref" : "../Groups/1"';
    const boss = await newUser({ displayName: nickName });
    const { id } = await newUser({ nickName, [ENTERPRISE]: { manager: { value: boss.id } } });
    await tenant.send('POST', '/Groups', { displayName: nickName, members: [{ value: id }] });
    const user = await userOf(id);
    const { manager } = user[ENTERPRISE];
    expect([user.nickName, manager.displayName, user.groups[0].display]).toEqual([
      nickName,
      nickName,
      nickName,
    ]);
  });
});

describe('10.19 members who do not exist (E25)', () => {
  it.each(['POST', 'PUT', 'PATCH add', 'PATCH replace', 'bulk'])(
    '10.19 do not prevent the others from joining: %s',
    async (way) => {
      const [a, gone] = await Promise.all([newUser(), newUser()]);
      await tenant.send('DELETE', `/Users/${gone.id}`);
      const members = [gone.id, a.id, 'never'].map((value) => ({ value }));
      const displayName = randomUUID();
      let id = way === 'POST' ? '' : (await newGroup()).id;
      if (way === 'POST') {
        const made = await tenant.send('POST', '/Groups', { displayName, members });
        expect([made.status, memberIdsOf(made.json)]).toEqual([201, [a.id]]);
        id = made.json.id;
      } else if (way === 'PUT') {
        await tenant.send('PUT', `/Groups/${id}`, { displayName, members });
      } else if (way === 'bulk') {
        const data = { Operations: [{ op: 'add', path: 'members', value: members }] };
        const operation = { method: 'PATCH', path: `/Groups/${id}`, data };
        const answer = await tenant.send('POST', '/Bulk', { Operations: [operation] });
        expect(answer.json.Operations[0].status).toBe('200');
      } else {
        const op = way.split(' ')[1];
        const answer = await patch(`/Groups/${id}`, { op, path: 'members', value: members });
        expect([answer.status, memberIdsOf(answer.json)]).toEqual([200, [a.id]]);
      }
      expect(memberIdsOf(await groupOf(id))).toEqual([a.id]);
    },
  );

  it('E25 do not prevent the rest of the request: another operation, a removal, a new name', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const unknown = { op: 'add', path: 'members', value: [{ value: randomUUID() }] };
    const joining = { op: 'add', path: 'members', value: [{ value: b.id }] };
    const leaving = { op: 'remove', path: `members[value eq "${a.id}"]` };
    const renaming = { op: 'replace', value: { displayName: randomUUID() } };
    for (const [operations, after] of [
      [
        [unknown, joining],
        [a.id, b.id],
      ],
      [[leaving, unknown], []],
      [[leaving, unknown, joining], [b.id]],
      [[unknown, renaming], [a.id]],
    ] as const) {
      const { id } = await newGroup(a.id);
      const answer = await patch(`/Groups/${id}`, ...operations);
      expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
      expect(memberIdsOf(answer.json).toSorted()).toEqual(after.toSorted());
    }
  });

  it('10.19 are named by a 400 when none exists, and the group does not change', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const group = await newGroup(a.id);
    const [one, two] = [randomUUID(), 'nobody'];
    const value = [{ value: one }, { value: two }];
    for (const answer of [
      await tenant.send('POST', '/Groups', { displayName: randomUUID(), members: value }),
      await tenant.send('PUT', `/Groups/${group.id}`, { displayName: 'x', members: value }),
      await patch(
        `/Groups/${group.id}`,
        { op: 'add', path: 'members', value: value.slice(0, 1) },
        { op: 'add', path: 'members', value: value.slice(1) },
      ),
    ]) {
      expectScimError(answer, 400, 'invalidValue');
      expect(answer.json.detail).toContain(one);
      expect(answer.json.detail).toContain(two);
    }
    expect(await groupOf(group.id)).toEqual(group);
    expect(memberIdsOf(await groupOf(group.id))).not.toContain(b.id);
  });

  it('10.19 include groups, which are refused', async () => {
    const { id } = await newUser();
    const inner = await newGroup();
    for (const value of [[{ value: inner.id }, { value: id }], [{ value: id, type: 'Group' }]]) {
      const group = await newGroup();
      const answer = await patch(`/Groups/${group.id}`, { op: 'add', path: 'members', value });
      expectScimError(answer, 400, 'invalidValue');
      expect(memberIdsOf(await groupOf(group.id))).toEqual([]);
    }
  });

  it('10.19 are removed by a list that names a group, too (E19)', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const inner = await newGroup();
    const { id } = await newGroup(a.id, b.id);
    const remove = (...value: object[]) =>
      patch(`/Groups/${id}`, { op: 'Remove', path: 'members', value });
    const group = { value: inner.id, type: 'Group' };
    const answer = await remove({ value: a.id }, group);
    expect([answer.status, memberIdsOf(answer.json)]).toEqual([200, [b.id]]);
    const nothing = await remove(group);
    expect([nothing.status, nothing.json.meta]).toEqual([200, answer.json.meta]);
  });

  it('10.19 include users of another organization', async () => {
    const other = await addTenant(app);
    const theirs = await other.send('POST', '/Users', { userName: `a@${other.domain}` });
    const { id } = await newUser();
    const group = await newGroup(id, theirs.json.id);
    expect(memberIdsOf(group)).toEqual([id]);
  });
});

describe('a delta by lastModified', () => {
  it('finds a group after each change of its members, also after the removal and the new name of one', async () => {
    const [a, b] = await Promise.all([newUser(), newUser()]);
    const { id } = await newGroup(a.id, b.id);
    const acts: readonly (() => Promise<unknown>)[] = [
      () => patch(`/Groups/${id}`, { op: 'remove', path: `members[value eq "${b.id}"]` }),
      () => patch(`/Groups/${id}`, { op: 'add', path: 'members', value: [{ value: b.id }] }),
      () => patch(`/Users/${a.id}`, { op: 'replace', path: 'displayName', value: randomUUID() }),
      () => tenant.send('DELETE', `/Users/${a.id}`),
    ];
    for (const [index, act] of acts.entries()) {
      const before = (await groupOf(id)).meta;
      const filter = `id eq "${id}" and meta.lastModified gt "${before.lastModified}"`;
      expect([index, await found(tenant, 'Groups', filter)]).toEqual([index, []]);
      await act();
      const [after] = await found(tenant, 'Groups', filter);
      expect([index, after?.['id']]).toEqual([index, id]);
      expect(after?.['meta']).toEqual((await groupOf(id)).meta);
    }
  });
});

describe('10.19 filters by derived attributes', () => {
  it('10.19 match value, type and display of members', async () => {
    const a = await newUser({ displayName: `A ${randomUUID()}` });
    const b = await newUser();
    const { id } = await newGroup(a.id);
    for (const [filter, count] of [
      [`members[value eq "${a.id}" and type eq "User"]`, 1],
      [`members[value eq "${a.id}" and type eq "Group"]`, 0],
      [`members[value eq "${b.id}" and type eq "User"]`, 0],
      [`members[display eq "${a.displayName.toUpperCase()}"]`, 1],
      [`members.display co "${a.displayName}"`, 1],
      [`members[display eq "nobody"] and id eq "${id}"`, 0],
    ] as const) {
      const groups = await found(tenant, 'Groups', filter);
      expect([filter, groups.map((group) => group.id)]).toEqual([filter, count ? [id] : []]);
    }
  });

  it('10.19 match the type of groups, and the version', async () => {
    const boss = await newUser();
    const { id } = await withManager(boss.id);
    const group = await newGroup(id);
    await tenant.send('DELETE', `/Users/${(await newUser()).id}`);
    const user = await userOf(id);
    for (const [filter, ids] of [
      [`groups[type eq "direct" and value eq "${group.id}"]`, [id]],
      [`groups.type eq "indirect"`, []],
      [`id eq "${id}" and groups.type eq "direct"`, [id]],
      [`id eq "${id}" and meta.version eq ${JSON.stringify(user.meta.version)}`, [id]],
      [`id eq "${id}" and meta.version eq "W/\\"0\\""`, []],
    ] as const) {
      const users = await found(tenant, 'Users', filter);
      expect([filter, users.map((one) => one.id)]).toEqual([filter, ids]);
    }
    await tenant.send('DELETE', `/Users/${id}`);
    const { version } = (await groupOf(group.id)).meta;
    const filter = `id eq "${group.id}" and meta.version eq ${JSON.stringify(version)}`;
    expect(await found(tenant, 'Groups', filter)).toHaveLength(1);
  });
});
