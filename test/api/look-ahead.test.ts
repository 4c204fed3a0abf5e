import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { rows } from '../support/rows.js';
import { addTenant, type ScimTenant } from '../support/scim.js';

describe('a caller who is looked up while the database decides about the rate limit', () => {
  let app: TestApp;
  let tenant: ScimTenant;
  beforeAll(async () => {
    app = await startTestApp();
    tenant = await addTenant(app);
    await app.dataSource.query('UPDATE scim_tokens SET last_used_at = NULL');
  });
  afterAll(() => app.close());

  /**
   * Returns an address whose rate limit is used up by a row in the database, of which the process
   * does not know yet.
   */
  async function exhausted(): Promise<string> {
    const address = newAddress();
    await app.dataSource.query(
      `INSERT INTO rate_limits (bucket, tat, admitted)
       VALUES ($1, now() + interval '20 s', true)`,
      [`general ${address}`],
    );
    return address;
  }
  const find = (address: string, token = tenant.token) =>
    app.client().get('/scim/v2/Users?count=1', {
      address,
      headers: { authorization: `Bearer ${token}` },
    });
  const lastUse = async () => {
    const [token] = await rows<{ last_used_at: Date | null }>(
      app.dataSource,
      `SELECT last_used_at FROM scim_tokens WHERE org_id = '${tenant.orgId}'`,
    );
    return token?.last_used_at ?? null;
  };

  it('is refused by the limit first: a wrong token and a right one get the same 429', async () => {
    const answers = [await find(await exhausted()), await find(await exhausted(), 'wrong')];
    expect(answers.map(({ status }) => status)).toEqual([429, 429]);
    expect(answers[0]?.json).toEqual(answers[1]?.json);
  });

  it('leaves no trace of a refused request, and records the use of an admitted one', async () => {
    expect(await lastUse()).toBeNull();
    expect((await find(await exhausted())).status).toBe(429);
    expect(await lastUse()).toBeNull();
    expect((await find(newAddress())).status).toBe(200);
    expect(await lastUse()).not.toBeNull();
    expect((await find(newAddress(), 'wrong')).status).toBe(401);
  });

  it('is not remembered: a token that was revoked opens nothing from then on', async () => {
    expect((await find(newAddress())).status).toBe(200);
    await app.dataSource.query('UPDATE scim_tokens SET revoked_at = now()');
    expect((await find(newAddress())).status).toBe(401);
  });
});
