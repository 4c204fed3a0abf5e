import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Answer } from '../support/client.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { MovableClock } from '../support/movable-clock.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import { patchOf } from '../support/scim-requests.js';

/** More milliseconds than those in which an operation of a bulk request may begin. */
const LONG = 21_000;

describe('a bulk request that takes long', () => {
  const clock = new MovableClock();
  let app: TestApp;
  let tenant: ScimTenant;
  beforeAll(async () => {
    app = await startTestApp({ clock });
    tenant = await addTenant(app);
  });
  afterAll(() => app.close());

  const statusesOf = ({ json }: Answer) =>
    (json.Operations as { status: string }[]).map(({ status }) => status);

  /** Sends operations of which the first one takes long. Returns the statuses of all. */
  async function slowly(operations: readonly object[]): Promise<string[]> {
    let sent: Promise<Answer> | undefined;
    await app.dataSource.transaction(async (tx) => {
      await tx.query('SELECT FROM directory_locks WHERE org_id = $1 FOR UPDATE', [tenant.orgId]);
      sent = tenant.send('POST', '/Bulk', { Operations: operations });
      await untilWaiting(app.dataSource, 1);
      clock.advance(LONG);
    });
    return statusesOf((await sent) as Answer);
  }

  it('begins no operation after 20 s, and says so before the client gives up', async () => {
    const [leaver, other] = await Promise.all(
      ['leaver', 'other'].map(async (userName) => {
        const { json } = await tenant.send('POST', '/Users', { userName, active: false });
        return `/Users/${String(json.id)}`;
      }),
    );
    const late = [
      {
        method: 'PATCH',
        path: leaver,
        data: patchOf({ op: 'replace', path: 'active', value: true }),
      },
      { method: 'DELETE', path: other },
    ];
    const first = { method: 'POST', path: '/Users', bulkId: 'a', data: { userName: 'first' } };
    expect(await slowly([first, ...late])).toEqual(['201', '408', '408']);
    const shown = await tenant.send('GET', leaver ?? '');
    expect([shown.status, shown.json.active]).toEqual([200, false]);
    const again = await tenant.send('POST', '/Bulk', { Operations: late });
    expect(statusesOf(again)).toEqual(['200', '204']);
  });

  it('refuses no operation because a user to whom it refers was not created in time', async () => {
    const made = (userName: string) => {
      const data = { userName };
      return { method: 'POST', path: '/Users', bulkId: userName, data };
    };
    const group = {
      method: 'POST',
      path: '/Groups',
      bulkId: 'group',
      data: { displayName: 'Late', members: [{ value: 'bulkId:late' }] },
    };
    expect(await slowly([made('slow'), made('late'), group])).toEqual(['201', '408', '408']);
    const again = await tenant.send('POST', '/Bulk', { Operations: [made('late'), group] });
    expect(statusesOf(again)).toEqual(['201', '201']);
  });
});
