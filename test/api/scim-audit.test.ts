import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { rows } from '../support/rows.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import { made, patchOf } from '../support/scim-requests.js';

let app: TestApp;
let tenant: ScimTenant;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());
beforeEach(async () => {
  tenant = await addTenant(app);
});

interface Row {
  readonly type: string;
  readonly details: Record<string, unknown>;
}

/**
 * Returns the `scim_operation` events of the organization, the oldest first, without their counts
 * of ended sessions and certificates.
 */
const written = () =>
  rows<Row>(
    app.dataSource,
    `SELECT type, class, request_id IS NOT NULL AS requested, host(ip) ~ '^10[.]' AS addressed,
            now() - created_at < interval '1 minute' AS timed,
            details - '{sessions,certificates}'::text[] AS details
     FROM audit_events WHERE org_id = $1 AND type = 'scim_operation' ORDER BY id`,
    [tenant.orgId],
  );

/** Expects exactly these details, one event for each SCIM operation, in their order. */
async function expectRows(...details: readonly object[]): Promise<void> {
  const expected = details.map((one) => ({
    type: 'scim_operation',
    class: 'admin',
    requested: true,
    addressed: true,
    timed: true,
    details: { ...one, scim_token_id: tenant.tokenId },
  }));
  expect(await written()).toEqual(expected);
}

const address = () => `${randomUUID().slice(0, 13)}@${tenant.domain}`;

describe('the audit rows of SCIM', () => {
  const about = (resource: 'User' | 'Group', operation: string, id: string) => ({
    operation,
    resource_type: resource,
    resource_id: id,
  });

  it('of a user: create and delete with the e-mail, and each update', async () => {
    const email = address();
    const { id } = await made(tenant, 'Users', { userName: email });
    const created = { ...about('User', 'create', id), email };
    const updated = about('User', 'update', id);
    await expectRows(created);

    await tenant.send('PUT', `/Users/${id}`, { userName: email, title: 'x' });
    await expectRows(created, updated);
    const changes = [
      { op: 'replace', path: 'title', value: 'y' },
      { op: 'replace', path: 'active', value: 'False' },
      { op: 'replace', path: 'active', value: true },
    ];
    for (const change of changes) await tenant.send('PATCH', `/Users/${id}`, patchOf(change));
    await expectRows(created, updated, updated, updated, updated);

    const renamed = address();
    await tenant.send(
      'PATCH',
      `/Users/${id}`,
      patchOf({ op: 'add', value: { userName: renamed } }),
    );
    await tenant.send('DELETE', `/Users/${id}`);
    await expectRows(created, ...Array.from({ length: 5 }, () => updated), {
      ...about('User', 'delete', id),
      email: renamed,
    });
  });

  it('of a user without an e-mail', async () => {
    const { id } = await made(tenant, 'Users', { userName: randomUUID() });
    await tenant.send('DELETE', `/Users/${id}`);
    await expectRows(
      { ...about('User', 'create', id), email: null },
      { ...about('User', 'delete', id), email: null },
    );
  });

  it('of a group: create and delete with the name, and each update, also of its members', async () => {
    const user = await made(tenant, 'Users', { userName: address() });
    const [first] = await written();
    const displayName = randomUUID();
    const { id } = await made(tenant, 'Groups', { displayName, members: [{ value: user.id }] });
    const path = `/Groups/${id}`;
    await tenant.send('PATCH', path, patchOf({ op: 'remove', path: 'members' }));
    await tenant.send('PUT', path, { displayName: 'new', members: [{ value: user.id }] });
    await tenant.send('DELETE', path);
    await expectRows(
      first?.details ?? {},
      { ...about('Group', 'create', id), display_name: displayName },
      about('Group', 'update', id),
      about('Group', 'update', id),
      { ...about('Group', 'delete', id), display_name: 'new' },
    );
  });

  it('of a bulk request: one for each operation', async () => {
    const userName = address();
    const post = { method: 'POST', path: '/Users', bulkId: 'a', data: { userName } };
    const refer = { displayName: 'g', members: [{ value: 'bulkId:a' }] };
    const { json } = await tenant.send('POST', '/Bulk', {
      Operations: [
        post,
        { ...post, bulkId: 'b' },
        { method: 'POST', path: '/Groups', bulkId: 'c', data: refer },
        { method: 'DELETE', path: '/Users/bulkId:a' },
      ],
    });
    const idAt = (n: number) => json.Operations[n].location.split('/').at(-1) as string;
    await expectRows(
      { ...about('User', 'create', idAt(0)), email: userName },
      { ...about('Group', 'create', idAt(2)), display_name: 'g' },
      { ...about('User', 'delete', idAt(0)), email: userName },
    );
  });

  it('are not written for refused requests and reads', async () => {
    const user = await made(tenant, 'Users', { userName: address() });
    const before = await written();
    const path = `/Users/${user.id}`;
    const refused = [
      await tenant.send('POST', '/Users', { userName: user.userName }),
      await tenant.send('POST', '/Groups', {
        displayName: 'x',
        members: [{ value: randomUUID() }],
      }),
      await tenant.send('PATCH', path, patchOf({ op: 'replace', path: 'id', value: 'x' })),
      await tenant.send('PATCH', path, patchOf({ op: 'replace', path: 'active' })),
      await tenant.send('PUT', path, {}, { 'if-match': 'W/"9"' }),
      await tenant.send('DELETE', path, undefined, { 'if-match': 'W/"9"' }),
      await tenant.send('DELETE', `/Users/${randomUUID()}`),
    ];
    for (const { status } of refused) expect(status).toBeGreaterThanOrEqual(400);
    await tenant.send('GET', path);
    await tenant.send('GET', '/Groups');
    await tenant.send('POST', '/.search', {});
    expect(await written()).toEqual(before);
  });
});
