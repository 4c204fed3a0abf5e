import { setTimeout as sleep } from 'node:timers/promises';
import type { QueryRunner } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Answer } from '../support/client.js';
import { lockWaiters } from '../support/lock-waiters.js';
import { addTenant, type ScimTenant } from '../support/scim.js';
import { expectScimError, made, withQuery } from '../support/scim-requests.js';

const CONNECTIONS = 10; // SVC_DB_MAX_CONNECTIONS of a test

let app: TestApp;
let theirs: ScimTenant;
let ours: ScimTenant;
beforeAll(async () => {
  app = await startTestApp();
  theirs = await addTenant(app);
  ours = await addTenant(app);
  await made(theirs, 'Groups', { displayName: 'somebody' });
});
afterAll(() => app.close());

/** Who searches groups waits, until the other transaction ends: nobody can know how slow a real one is. */
describe('while searches take for ever', () => {
  let slow: QueryRunner;
  beforeAll(async () => {
    slow = app.dataSource.createQueryRunner();
    await slow.startTransaction();
    await slow.query("SET LOCAL idle_in_transaction_session_timeout = '60s'");
    await slow.query('LOCK TABLE groups IN ACCESS EXCLUSIVE MODE');
  });
  afterAll(async () => {
    await slow.rollbackTransaction();
    await slow.release();
  });

  const costly = (tenant: ScimTenant) =>
    tenant.send('GET', withQuery('/Groups', { filter: 'displayName co "body"' }));
  const stuck = () => lockWaiters(app.dataSource);
  const untilStuck = async (howMany: number) => {
    while ((await stuck()) < howMany) await sleep(10);
  };
  const codes = (answers: readonly Answer[]) => new Set(answers.map(({ status }) => status));

  it('an organization has two at a time, and the others go on', async () => {
    const searches = Promise.all(Array.from({ length: 20 }, () => costly(theirs)));
    await untilStuck(2);
    const user = await made(ours, 'Users', { userName: `a@${ours.domain}` });
    expect((await ours.send('GET', '/Users?attributes=id')).status).toBe(200);
    expect((await ours.send('DELETE', `/Users/${user.id}`)).status).toBe(204);
    expect(await stuck()).toBeLessThanOrEqual(2);
    const answers = await searches;
    expect(codes(answers)).toEqual(new Set([400, 429]));
    for (const answer of answers) {
      if (answer.status === 400) expectScimError(answer, 400, 'tooMany');
      else expect(answer.headers.get('retry-after')).toBe('1');
      expect(answer.text).not.toContain('database');
    }
  });

  it('all organizations together have less than half of the connections', async () => {
    const many = await Promise.all(Array.from({ length: 6 }, () => addTenant(app)));
    const searches = Promise.all(many.flatMap((tenant) => [costly(tenant), costly(tenant)]));
    await untilStuck(CONNECTIONS / 2 - 1);
    expect((await ours.send('GET', '/Users?attributes=id')).status).toBe(200);
    expect(await stuck()).toBeLessThan(CONNECTIONS / 2);
    expect((await searches).every(({ status }) => status === 400 || status === 503)).toBe(true);
  });
});
