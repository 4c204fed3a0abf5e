import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Answer } from '../support/client.js';
import { count, rows } from '../support/rows.js';
import { atScale } from '../support/scale.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import {
  expectScimError,
  found,
  insertUsers,
  made,
  memberIdsOf,
  patchOf,
  shown,
  withQuery,
} from '../support/scim-requests.js';

let app: TestApp;
let ours: ScimTenant;
let theirs: ScimTenant;
beforeAll(async () => {
  app = await startTestApp();
  ours = await addTenant(app);
  theirs = await addTenant(app);
});
afterAll(() => app.close());

const address = (tenant = ours) => `${randomUUID().slice(0, 13)}@${tenant.domain}`;
const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status).toSorted();
const times = <T>(howMany: number, act: (n: number) => Promise<T>) =>
  Promise.all(Array.from({ length: howMany }, (_, n) => act(n)));

describe('two organizations', () => {
  const MARK = 'the mark of the others';
  let user: Answer['json'];
  let group: Answer['json'];
  beforeAll(async () => {
    user = await made(theirs, 'Users', {
      userName: address(theirs),
      externalId: MARK,
      title: MARK,
      emails: [{ type: 'work', value: address(theirs) }],
    });
    group = await made(theirs, 'Groups', {
      displayName: MARK,
      members: [{ value: user.id }],
    });
    user = await shown(theirs, 'Users', user.id); // the user now shows the group
    await made(ours, 'Users', { userName: address() });
  });
  const unchanged = async () => {
    const now = await shown(theirs, 'Users', user.id);
    expect(now).toEqual(user);
    expect(await shown(theirs, 'Groups', group.id)).toEqual(group);
  };

  it('answer 404 to the ids of the other organization on every route, with every version', async () => {
    const operation = { op: 'replace', path: 'displayName', value: 'x' };
    for (const [path, resource] of [
      [`/Users/${user.id}`, user],
      [`/Groups/${group.id}`, group],
    ] as const) {
      const tag = resource.meta.version as string;
      for (const headers of [{}, { 'if-match': tag }, { 'if-match': '*' }]) {
        const body = { userName: address(), displayName: 'x' };
        expectScimError(await ours.send('PUT', path, body, headers), 404);
        expectScimError(await ours.send('PATCH', path, patchOf(operation), headers), 404);
        expectScimError(await ours.send('DELETE', path, undefined, headers), 404);
      }
      expectScimError(await ours.send('GET', path), 404);
      for (const tags of [tag, '*']) {
        const known = await ours.send('GET', path, undefined, { 'if-none-match': tags });
        expectScimError(known, 404);
      }
    }
    await unchanged();
  });

  it('find no user of the other by a filter, and `or` does not widen the search', async () => {
    const filters = [
      `id eq "${user.id}"`,
      `title eq "${MARK}"`,
      `title eq "${MARK}" or title pr or userName pr or active eq true or active eq false`,
      `userName eq "x") or (title eq "${MARK}"`,
      `groups.value eq "${group.id}"`,
      `groups eq "${group.id}" or groups.display co "mark"`,
      `not (userName eq "nobody") or id pr`,
      `emails[type eq "work" or value pr].value pr or meta.created gt "2000-01-01T00:00:00Z"`,
    ];
    for (const filter of filters) {
      for (const answer of [
        await ours.send('GET', withQuery('/Users', { filter })),
        await ours.send('POST', '/Users/.search', { filter }),
        await ours.send('POST', '/.search', { filter }),
      ]) {
        expect([filter, [200, 400].includes(answer.status)]).toEqual([filter, true]);
        for (const secret of [user.id as string, group.id as string, MARK, theirs.domain]) {
          expect(answer.text).not.toContain(secret);
        }
      }
    }
    for (const filter of [
      `members eq "${user.id}"`,
      `displayName eq "${MARK}" or displayName pr or id pr`,
      `not (displayName eq "nobody")`,
    ]) {
      expect(await found(ours, 'Groups', filter)).toEqual([]);
    }
  });

  it('count and sort only their own users', async () => {
    const inRows = await count(app.dataSource, 'users WHERE org_id = $1', [ours.orgId]);
    for (const sortBy of ['userName', 'title', 'id', 'meta.lastModified']) {
      const path = withQuery('/Users', { sortBy, count: 1000 });
      const { json, text } = await ours.send('GET', path);
      expect([json.totalResults, json.Resources.length]).toEqual([inRows, inRows]);
      expect(text).not.toContain(user.id);
    }
    const { json } = await ours.send('GET', '/Users?count=0');
    expect(json.totalResults).toBe(inRows);
  });

  it('refuse a cursor of the other', async () => {
    await insertUsers(app, theirs, 5);
    const mine = await addTenant(app);
    await insertUsers(app, mine, 10);
    for (const query of [{}, { sortBy: 'userName' }, { filter: 'active eq true' }]) {
      const first = withQuery('/Users', { ...query, cursor: '', count: 3 });
      const cursor = (await theirs.send('GET', first)).json.nextCursor as string;
      const path = withQuery('/Users', { ...query, cursor });
      expectScimError(await mine.send('GET', path), 400, 'invalidCursor');
      const search = await mine.send('POST', '/Users/.search', { ...query, cursor });
      expectScimError(search, 400, 'invalidCursor');
      expect((await theirs.send('GET', path)).status).toBe(200);
    }
  });

  it('cannot add users of the other to a group, nor by a bulk reference', async () => {
    const own = await made(ours, 'Groups', { displayName: randomUUID() });
    const members = [{ value: user.id }];
    const displayName = randomUUID();
    const tries = [
      await ours.send('POST', '/Groups', { displayName, members }),
      await ours.send('PUT', `/Groups/${own.id}`, { displayName, members }),
      await ours.send(
        'PATCH',
        `/Groups/${own.id}`,
        patchOf({ op: 'add', path: 'members', value: members }),
      ),
      await ours.send('PATCH', `/Groups/${own.id}`, patchOf({ op: 'replace', value: { members } })),
    ];
    for (const answer of tries) expectScimError(answer, 400, 'invalidValue');
    expect(await shown(ours, 'Groups', own.id)).toEqual(own);

    const bulk = await ours.send('POST', '/Bulk', {
      Operations: [
        { method: 'POST', path: '/Groups', bulkId: user.id, data: { displayName, members } },
        { method: 'DELETE', path: `/Users/${user.id}` },
        { method: 'PATCH', path: `/Groups/bulkId:${group.id}`, data: patchOf({ op: 'add' }) },
        { method: 'PUT', path: `/Groups/${group.id}`, data: { displayName: 'x' } },
      ],
    });
    const outcomes = bulk.json.Operations as { status: string }[];
    expect(outcomes.map(({ status }) => status)).toEqual(['400', '404', '400', '404']);
    await unchanged();
  });

  it('may have the same userName, externalId and displayName', async () => {
    const { userName } = user as { userName: string };
    const twin = await made(ours, 'Users', { userName, externalId: MARK });
    expect(await found(ours, 'Users', `externalId eq "${MARK}"`)).toEqual([twin]);
    await made(ours, 'Groups', { displayName: MARK });
    await unchanged();
  });
});

describe('concurrent requests', () => {
  it('20 POSTs of one userName: one 201, 19 409 uniqueness', async () => {
    const userName = address();
    const answers = await times(20, (n) =>
      ours.send('POST', '/Users', { userName: n % 2 ? userName : userName.toUpperCase() }),
    );
    expect(statuses(answers)).toEqual([201, ...Array.from({ length: 19 }, () => 409)]);
    for (const answer of answers.filter(({ status }) => status === 409)) {
      expectScimError(answer, 409, 'uniqueness');
    }
    expect(await found(ours, 'Users', `userName eq "${userName}"`)).toHaveLength(1);
  });

  it('20 POSTs of one group: one 201, 19 409 uniqueness', async () => {
    const displayName = randomUUID();
    const answers = await times(20, () => ours.send('POST', '/Groups', { displayName }));
    expect(statuses(answers)).toEqual([201, ...Array.from({ length: 19 }, () => 409)]);
  });

  it('refuses the name of another group to PUT and PATCH, and keeps the group as it was', async () => {
    const { displayName } = await made(ours, 'Groups', { displayName: randomUUID() });
    const { id, displayName: own } = await made(ours, 'Groups', { displayName: randomUUID() });
    const path = `/Groups/${id as string}`;
    const change = patchOf({ op: 'replace', path: 'displayName', value: displayName });
    expectScimError(await ours.send('PUT', path, { displayName }), 409, 'uniqueness');
    expectScimError(await ours.send('PATCH', path, change), 409, 'uniqueness');
    expect((await shown(ours, 'Groups', id)).displayName).toBe(own);
  });

  it('20 PATCHes of one user all take effect', async () => {
    const { id } = await made(ours, 'Users', { userName: address() });
    const answers = await times(20, (n) =>
      ours.send(
        'PATCH',
        `/Users/${id}`,
        patchOf({ op: 'add', path: 'roles', value: [{ value: `role ${n}` }] }),
      ),
    );
    expect(statuses(answers)).toEqual(Array.from({ length: 20 }, () => 200));
    const { roles, meta } = await shown(ours, 'Users', id);
    expect(roles).toHaveLength(20);
    expect(meta.version).toBe('W/"21"');
  });

  it('20 PATCHes under one If-Match: one 200, 19 412', async () => {
    const { id, meta } = await made(ours, 'Users', { userName: address() });
    const answers = await times(20, (n) =>
      ours.send('PATCH', `/Users/${id}`, patchOf({ op: 'add', path: 'title', value: `${n}` }), {
        'if-match': meta.version as string,
      }),
    );
    expect(statuses(answers)).toEqual([200, ...Array.from({ length: 19 }, () => 412)]);
  });

  it('20 adds of different members to one group all take effect', async () => {
    const ids = await insertUsers(app, ours, 20);
    const { id } = await made(ours, 'Groups', { displayName: randomUUID() });
    const answers = await times(20, (n) =>
      ours.send(
        'PATCH',
        `/Groups/${id}`,
        patchOf({ op: 'add', path: 'members', value: [{ value: ids[n] }] }),
      ),
    );
    expect(statuses(answers)).toEqual(ids.map(() => 200));
    expect(memberIdsOf(await shown(ours, 'Groups', id))).toEqual(ids);
  });

  it('20 DELETEs of one user: one 204, 19 404', async () => {
    const { id } = await made(ours, 'Users', { userName: address() });
    const answers = await times(20, () => ours.send('DELETE', `/Users/${id}`));
    expect(statuses(answers)).toEqual([204, ...Array.from({ length: 19 }, () => 404)]);
  });

  it('members who are deleted while they are added cause neither a row nor a 500', async () => {
    const ids = await insertUsers(app, ours, 20);
    const { id } = await made(ours, 'Groups', { displayName: randomUUID() });
    const value = ids.map((one) => ({ value: one }));
    const [added, ...deleted] = await Promise.all([
      ours.send('PATCH', `/Groups/${id}`, patchOf({ op: 'add', path: 'members', value })),
      ...ids.slice(0, 5).map((one) => ours.send('DELETE', `/Users/${one}`)),
    ]);
    expect([200, 400]).toContain(added.status);
    expect(statuses(deleted)).toEqual([204, 204, 204, 204, 204]);
    const now = memberIdsOf(await shown(ours, 'Groups', id));
    expect(now).toEqual(added.status === 200 ? ids.slice(5) : []);
  });
});

it('several users may have no e-mail at all', async () => {
  const users = await times(3, () => made(ours, 'Users', { userName: randomUUID() }));
  expect(new Set(users.map(({ id }) => id as string)).size).toBe(3);
});

/** The numbers of users on a page. The service returns at most 1,000. */
const LARGEST_PAGE = atScale({ small: 200, full: 1000 });
const PAGE = atScale({ small: 150, full: 400 });

describe('a member of a group who becomes a twin of a record', () => {
  it('is found by the name that the group shows', async () => {
    const email = address();
    const [{ id } = { id: '' }] = await rows<{ id: string }>(
      app.dataSource,
      'INSERT INTO users (id, org_id, email) VALUES (gen_random_uuid(), $1, $2) RETURNING id',
      [ours.orgId, email],
    );
    const group = await made(ours, 'Groups', { displayName: email, members: [{ value: id }] });
    const record = await made(ours, 'Users', { userName: address() });
    const value = [{ value: email, type: 'work' }];
    const named = await ours.send(
      'PATCH',
      `/Users/${record.id}`,
      patchOf({ op: 'add', path: 'emails', value }),
    );
    expect(named.status).toBe(200);
    expect(await count(app.dataSource, 'record_ties WHERE user_id = $1', [id])).toBe(1);
    const [member] = (await shown(ours, 'Groups', group.id)).members as { display: string }[];
    expect(member?.display).toBe(email);
    const withName = await found(ours, 'Groups', `members.display eq "${email}"`);
    expect(withName.map((one) => one.id)).toEqual([group.id]);
  });
});

describe('paging by cursor', () => {
  it.each([
    { sortBy: '', users: atScale({ small: 900, full: 100_000 }), most: LARGEST_PAGE },
    { sortBy: 'userName', users: atScale({ small: 400, full: 3000 }), most: PAGE },
    { sortBy: 'title', users: atScale({ small: 400, full: 3000 }), most: PAGE },
  ])(
    'over $users users with deletes in between, sorted by "$sortBy", neither misses nor repeats a user',
    async ({ sortBy, users, most }) => {
      const tenant = await addTenant(app);
      const ids = await insertUsers(app, tenant, users);
      // Without this, the statistics could be missing for minutes, which hot-look-ups.test.ts
      // tests.
      await rows(app.dataSource, 'ANALYZE users');
      const doomed = ids.filter((_, n) => n % 10 === 3);
      const seen: string[] = [];
      let cursor: string | undefined = '';
      const remove = async () => {
        for (const id of doomed.splice(0, 40)) {
          expect((await tenant.send('DELETE', `/Users/${id}`)).status).toBe(204);
        }
      };
      const staying = new Set(ids.filter((_, n) => n % 10 !== 3));
      while (cursor !== undefined) {
        const path = withQuery('/Users', { cursor, count: most, attributes: 'id', sortBy });
        const [{ status, json }] = await Promise.all([tenant.send('GET', path), remove()]);
        expect(status).toBe(200);
        seen.push(...(json.Resources as { id: string }[]).map(({ id }) => id));
        cursor = json.nextCursor as string | undefined;
      }
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen.filter((id) => staying.has(id)).toSorted()).toEqual([...staying].toSorted());
    },
    600_000,
  );
});

describe('a token', () => {
  it.each([
    ['revoked', 'UPDATE scim_tokens SET revoked_at = now() WHERE id = $1'],
    ['expired', "UPDATE scim_tokens SET expires_at = now() - interval '1 second' WHERE id = $1"],
  ])('that is %s is 401 at once, with a SCIM body', async (_, statement) => {
    const tenant = await addTenant(app);
    const user = await made(tenant, 'Users', { userName: randomUUID() });
    await rows(app.dataSource, statement, [tenant.tokenId]);
    const requests: [string, string, object?][] = [
      ['GET', '/Users'],
      ['GET', `/Users/${user.id}`],
      ['POST', '/Users', { userName: 'x' }],
      ['PUT', `/Users/${user.id}`, { userName: 'x' }],
      ['PATCH', `/Users/${user.id}`, patchOf({ op: 'replace', value: { active: false } })],
      ['DELETE', `/Users/${user.id}`],
      ['GET', '/Groups'],
      ['POST', '/Bulk', { Operations: [] }],
      ['POST', '/.search', {}],
      ['GET', '/Schemas'],
      ['GET', '/Me'],
    ];
    for (const [method, path, body] of requests) {
      const answer = await tenant.send(method, path, body);
      expectScimError(answer, 401);
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
    }
    const left = 'users WHERE org_id = $1 AND active';
    expect(await count(app.dataSource, left, [tenant.orgId])).toBe(1);
  });

  it('is refused under another scheme, in the query, or when it belongs to a user', async () => {
    for (const authorization of [`DPoP ${ours.token}`, `Basic ${ours.token}`, ours.token, '']) {
      const path = withQuery('/Users', { access_token: ours.token });
      expectScimError(await ours.send('GET', path, undefined, { authorization }), 401);
    }
    const { client } = await app.enrolled('person@scim.example');
    const cookie = `svc_session=${client.cookie('svc_session')}`;
    for (const headers of [
      { authorization: '', cookie },
      { authorization: `Bearer ${client.cookie('svc_session')}` },
    ]) {
      expectScimError(await ours.send('GET', '/Users', undefined, headers), 401);
    }
  });
});
