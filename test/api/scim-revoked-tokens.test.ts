import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { MovableClock } from '../support/movable-clock.js';
import { withLateBody } from '../support/raw-http.js';
import { count } from '../support/rows.js';
import { addTenant, type ScimTenant } from '../support/scim.js';

/** More milliseconds than a look-up of a token is good for. */
const LONG = 1_000;

describe('a SCIM token that is revoked while its request runs', () => {
  const clock = new MovableClock();
  let app: TestApp;
  let tenant: ScimTenant;
  beforeAll(async () => {
    app = await startTestApp({ clock });
  });
  beforeAll(async () => {
    tenant = await addTenant(app);
  });
  afterAll(() => app.close());

  const revoked = () =>
    app.dataSource.query('UPDATE scim_tokens SET revoked_at = now() WHERE id = $1', [
      tenant.tokenId,
    ]);

  it('changes nothing more: the other operations of a bulk request are 401', async () => {
    const Operations = ['one', 'two', 'three'].map((userName) => ({
      method: 'POST',
      path: '/Users',
      bulkId: userName,
      data: { userName },
    }));
    let sent: ReturnType<typeof tenant.send> | undefined;
    await app.dataSource.transaction(async (tx) => {
      await tx.query('SELECT FROM directory_locks WHERE org_id = $1 FOR UPDATE', [tenant.orgId]);
      sent = tenant.send('POST', '/Bulk', { Operations });
      await untilWaiting(app.dataSource, 1);
      await revoked();
      clock.advance(LONG);
    });
    const outcomes = (await sent)?.json.Operations as { status: string; response?: object }[];
    expect(outcomes.map(({ status }) => status)).toEqual(['201', '401', '401']);
    expect(outcomes[1]?.response).toMatchObject({ status: '401' });
    expect(await count(app.dataSource, 'users WHERE org_id = $1', [tenant.orgId])).toBe(1);
  });

  it.each([
    ['POST', '/Users', { userName: 'late' }],
    ['POST', '/Users/.search', {}],
  ])('%s %s: a body that comes after the revocation is 401', async (method, path, body) => {
    tenant = await addTenant(app);
    const headers = {
      authorization: `Bearer ${tenant.token}`,
      'content-type': 'application/scim+json',
    };
    const send = await withLateBody(app.baseUrl, `${method} /scim/v2${path}`, headers, body);
    await revoked();
    clock.advance(LONG);
    const answer = await send();
    expect(answer.status).toBe(401);
    expect(answer.header('www-authenticate')).toMatch(/^Bearer .*error="invalid_token"/);
    expect(await count(app.dataSource, 'users WHERE org_id = $1', [tenant.orgId])).toBe(0);
  });
});
