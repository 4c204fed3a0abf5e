import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  MembershipsRepository,
  MOST_TAKEN,
} from '../../src/domain/directory/provisioning/memberships.repository.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { count } from '../support/rows.js';
import { atScale } from '../support/scale.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import {
  found,
  insertMembers,
  insertUsers,
  made,
  memberIdsOf,
  patchOf,
  withMembersLocked,
} from '../support/scim-requests.js';

const MEMBERS = atScale({ small: 10_500, full: 20_000 });

describe(`a group of ${MEMBERS.toLocaleString('en')} members`, () => {
  let app: TestApp;
  let tenant: ScimTenant;
  let ids: string[];
  let path: string;
  let groupId: string;
  beforeAll(async () => {
    app = await startTestApp();
    tenant = await addTenant(app);
    ids = await insertUsers(app, tenant, MEMBERS + 1);
    groupId = (await made(tenant, 'Groups', { displayName: 'everybody' })).id;
    path = `/Groups/${groupId}`;
    await insertMembers(app, groupId, ids.slice(0, MEMBERS));
  });
  afterAll(() => app.close());
  const change = (...operations: readonly object[]) =>
    tenant.send('PATCH', path, patchOf(...operations));
  const membersNow = () => count(app.dataSource, 'group_members WHERE group_id = $1', [groupId]);

  it('is returned by GET, with every member once', async () => {
    const { status, json, headers } = await tenant.send('GET', path);
    expect([status, json.displayName]).toEqual([200, 'everybody']);
    expect(memberIdsOf(json)).toEqual(ids.slice(0, MEMBERS));
    expect(json.members[0]).toEqual({
      value: ids[0],
      $ref: `${app.baseUrl}/scim/v2/Users/${ids[0]}`,
      display: expect.stringContaining(tenant.domain),
      type: 'User',
    });
    expect(headers.get('etag')).toBe(json.meta.version);
  });

  it('is listed with its members, and a small group after it', async () => {
    const small = await made(tenant, 'Groups', {
      displayName: randomUUID(),
      members: [{ value: ids[0] }],
    });
    const [first, second] = await found(tenant, 'Groups', 'displayName pr');
    expect(first.members).toHaveLength(MEMBERS);
    expect(second).toEqual(small);
  });

  it('is read, listed, renamed and deleted without loading members that were not requested', async () => {
    const spare = await made(tenant, 'Groups', { displayName: randomUUID() });
    await withMembersLocked(app, async () => {
      for (const query of [
        'attributes=displayName',
        'excludedAttributes=members',
        'attributes=id',
      ]) {
        const one = await tenant.send('GET', `${path}?${query}`);
        expect([query, one.status, one.json.members]).toEqual([query, 200, undefined]);
        const list = await tenant.send('GET', `/Groups?${query}`);
        expect([query, list.status]).toEqual([query, 200]);
      }
      const known = await tenant.send('GET', path, undefined, { 'if-none-match': '*' });
      expect(known.status).toBe(304);
      const renamed = await tenant.send(
        'PATCH',
        `/Groups/${spare.id}?attributes=displayName`,
        patchOf({ op: 'replace', path: 'displayName', value: randomUUID() }),
      );
      expect(renamed.status).toBe(200);
    });
  });

  it('is changed by PATCH: 204, without a body', async () => {
    const last = ids[MEMBERS] ?? '';
    const renamed = await change({ op: 'replace', path: 'displayName', value: 'Everybody' });
    expect([renamed.status, renamed.text]).toEqual([204, '']);
    const added = await change({ op: 'add', path: 'members', value: [{ value: last }] });
    expect([added.status, await membersNow()]).toEqual([204, MEMBERS + 1]);
    const removed = await change({ op: 'remove', path: `members[value eq "${last}"]` });
    expect([removed.status, await membersNow()]).toEqual([204, MEMBERS]);
    const listed = await change({ op: 'remove', path: 'members', value: [{ value: ids[0] }] });
    expect([listed.status, await membersNow()]).toEqual([204, MEMBERS - 1]);
  });

  it('is returned whole while it changes, and while its client disconnects', async () => {
    const [answer] = await Promise.all([
      tenant.send('GET', path),
      tenant.send('DELETE', `/Users/${ids[MEMBERS - 100]}`),
      tenant.send('DELETE', `/Users/${ids[1]}`),
    ]);
    expect(answer.json.members.length).toBeGreaterThanOrEqual(MEMBERS - 3);
    const leaver = new AbortController();
    const response = await fetch(`${app.baseUrl}/scim/v2${path}`, {
      headers: { authorization: `Bearer ${tenant.token}`, 'x-forwarded-for': '10.1.2.3' },
      signal: leaver.signal,
    });
    leaver.abort();
    await expect(response.text()).rejects.toThrow(/abort/i);
    expect((await tenant.send('GET', `${path}?attributes=id`)).status).toBe(200);
  });

  it('10.2 adds members in batches, and keeps those that a PUT names', async () => {
    const taken = vi.spyOn(app.nest.get(MembershipsRepository, { strict: false }), 'removeBatch');
    const staying = [2, MEMBERS / 2 - 10, MEMBERS / 2 + 10, MEMBERS - 10].map((n) => ids[n] ?? '');
    const before = await membersNow();
    const members = staying.map((value) => ({ value }));
    const put = await tenant.send('PUT', path, { displayName: 'few', members });
    expect([put.status, memberIdsOf(put.json)]).toEqual([200, staying]);
    expect(await membersNow()).toBe(staying.length);
    expect(taken).toHaveBeenCalledTimes(Math.floor(before / MOST_TAKEN) + 1);
    taken.mockRestore();
  });

  it('is emptied by a PUT without members', async () => {
    const put = await tenant.send('PUT', path, { displayName: 'nobody' });
    expect([put.status, put.json.members, await membersNow()]).toEqual([200, undefined, 0]);
  });

  it('10.2 is deleted with all of its members, and no member of another group', async () => {
    const other = await made(tenant, 'Groups', {
      displayName: randomUUID(),
      members: [{ value: ids[0] }],
    });
    await insertMembers(app, groupId, ids.slice(2, MOST_TAKEN + 3));
    expect((await tenant.send('DELETE', path)).status).toBe(204);
    expect(await membersNow()).toBe(0);
    expect(await count(app.dataSource, 'group_members WHERE group_id = $1', [other.id])).toBe(1);
  });
});
