import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accessApi, linkInstallation, putRule } from '../../support/access-api.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';
import { lockWaiters } from '../../support/lock-waiters.js';
import { idOf } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';

const PATH = '/github_installation/900';
const TOKENS = 'github_tokens WHERE installation_id = 900 AND revoke_reason IS NULL';

let app: TestApp;
let admin: Client;
let bob: string;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: admin } = await app.enrolled('ada@endings.example'));
  await app.enrolled('bob@endings.example');
  bob = await idOf(app, 'bob@endings.example');
  await linkInstallation(app, 'ada@endings.example', 900, 'endings');
});
afterAll(() => app.close());

/** Gives bob a token of the installation, without GitHub. */
async function giveToken(): Promise<void> {
  await rows(
    app.dataSource,
    `INSERT INTO github_tokens (id, installation_id, owner, user_id, org_id, session_id, sealed, permissions, expires_at)
     SELECT gen_random_uuid(), 900, 'endings', u.id, u.org_id, s.id, 'x', '{}', now() + interval '1 hour'
     FROM users u JOIN sessions s ON s.user_id = u.id WHERE u.id = $1 AND s.level = 'verified' LIMIT 1`,
    [bob],
  );
}

describe('the answer to a change that ends a reach', () => {
  it('comes after the end of what the first people hold, also while the worker ends it', async () => {
    for (let round = 0; round < 8; round += 1) {
      await putRule(admin, PATH, { assignments: [{ user: bob }] });
      await giveToken();
      const read = await accessApi(admin, 'GET', PATH);
      const tag = read.headers.get('etag') ?? '';
      const holder = app.dataSource.createQueryRunner();
      await holder.startTransaction();
      await holder.query('SELECT FROM users WHERE id = $1 FOR SHARE', [bob]);
      let isAnswered = false;
      const rule = { access: 'assigned', conditions: {}, assignments: [] };
      const change = accessApi(admin, 'PUT', PATH, rule, tag).then((answer) => {
        isAnswered = true;
        return answer;
      });
      await expect.poll(() => lockWaiters(app.dataSource)).toBeGreaterThan(0);
      for (let n = 0; n < 3; n += 1) await app.client().get('/health/ready');
      const early = isAnswered;
      await holder.rollbackTransaction();
      await holder.release();
      expect([early, (await change).status]).toEqual([false, 200]);
      expect(await count(app.dataSource, TOKENS)).toBe(0);
    }
  });

  it('does not come back from an end that fails: the queue keeps it', async () => {
    await putRule(admin, PATH, { assignments: [{ user: bob }] });
    await giveToken();
    await app.dataSource.query('ALTER TABLE github_tokens RENAME TO hidden_tokens');
    const answer = await putRule(admin, PATH, {});
    const queued = await count(app.dataSource, 'access_endings');
    await app.dataSource.query('ALTER TABLE hidden_tokens RENAME TO github_tokens');
    expect([answer.status, queued]).toEqual([200, 1]);
    await expect.poll(() => count(app.dataSource, TOKENS), { timeout: 90_000 }).toBe(0);
  });

  it('has an event for each person, naming the target, the rule, the admin and the request, once for each token', async () => {
    await putRule(admin, PATH, { assignments: [{ user: bob }] });
    await giveToken();
    await putRule(admin, PATH, {});
    const [event] = await rows(
      app.dataSource,
      `SELECT e.actor_email, e.subject_email, e.details,
              (SELECT c.details ->> 'change' FROM audit_events c
               WHERE c.request_id = e.request_id AND c.type = 'access_rule_changed') AS change
       FROM audit_events e WHERE e.type = 'access_ended' ORDER BY e.id DESC LIMIT 1`,
    );
    expect(event).toEqual({
      actor_email: 'ada@endings.example',
      subject_email: 'bob@endings.example',
      details: {
        target: { kind: 'github_installation', name: 'endings', id: '900' },
        rule: 'assignment',
        github_tokens: 1,
      },
      change: 'rule',
    });
  });
});
