import { AccessEndings } from '../../../src/domain/access-revocation/ended-reach/access-endings.service.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accessApi, addHostGroup, linkInstallation, putRule } from '../../support/access-api.js';
import { makeGroupRow } from '../../support/access-rows.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { lockWaiters } from '../../support/lock-waiters.js';
import { idOf } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

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

/** Inserts a token of the GitHub installation for bob, without a request to GitHub. */
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

const issue = async (by: Client) => {
  const body = { public_key: newPublicKeyLine() };
  const answer = await by.post('/v1/credentials/ssh', body, { address: newAddress() });
  expect(answer.status).toBe(200);
  const left = (Date.parse(answer.json.valid_before as string) - Date.now()) / 1000;
  const principals = answer.json.principals as string[];
  return { serial: answer.json.serial as string, left, principals };
};
const isRevoked = async (serial: string) =>
  (await app.client().get(`/v1/credentials/ssh/krl/${serial}`)).json.revoked as boolean;

describe('a certificate that ends later than a new condition allows', () => {
  let cleo: Client;
  beforeAll(async () => {
    ({ client: cleo } = await app.enrolled('cleo@endings.example'));
  });

  const within = (seconds: number) => ({
    access: 'everyone' as const,
    conditions: { touch_within_seconds: seconds },
  });

  it('is revoked before the answer, and the preview counts it', async () => {
    const path = await addHostGroup(admin, 'outlived');
    const old = await issue(cleo);
    expect(old.left).toBeGreaterThan(3_600);
    const wanted = { ...within(60), assignments: [] };
    const preview = await accessApi(admin, 'POST', `${path}/preview`, wanted);
    expect(preview.json.ends).toEqual({ certificates: 1 });
    expect((await putRule(admin, path, within(60))).status).toBe(200);
    expect(await isRevoked(old.serial)).toBe(true);

    const short = await issue(cleo);
    expect(short.left).toBeLessThanOrEqual(60);
    expect(await isRevoked(short.serial)).toBe(false);
    // A certificate that expires before the limit stays, when the condition becomes looser and when
    // it becomes narrower.
    expect((await putRule(admin, path, within(7_200))).status).toBe(200);
    expect((await putRule(admin, path, within(3_600))).status).toBe(200);
    expect(await isRevoked(short.serial)).toBe(false);
    expect((await accessApi(admin, 'POST', `${path}/preview`, wanted)).json.ends).toEqual({
      certificates: 0,
    });
  });

  it('stays if the condition becomes looser', async () => {
    const path = await addHostGroup(admin, 'loosened');
    expect((await putRule(admin, path, within(1_800))).status).toBe(200);
    const { serial, left } = await issue(cleo);
    expect(left).toBeLessThanOrEqual(1_800);
    for (const looser of [within(3_600), { access: 'everyone' as const }]) {
      expect((await putRule(admin, path, looser)).status).toBe(200);
      expect(await isRevoked(serial)).toBe(false);
    }
  });
});

describe('the answer to a change that takes a small group from a target with many people', () => {
  /** Inserts members who hold certificates with a group of hosts. Returns their ids. */
  async function addHolders(targetId: string, size: number): Promise<string[]> {
    const made = await rows<{ id: string }>(
      app.dataSource,
      `INSERT INTO users (id, org_id, email, scim_managed)
       SELECT gen_random_uuid(), u.org_id, 'holder-' || n || '@endings.example', true
       FROM users u CROSS JOIN generate_series(1, $2) n WHERE u.id = $1 RETURNING id`,
      [bob, size],
    );
    const ids = made.map(({ id }) => id);
    await rows(
      app.dataSource,
      `INSERT INTO ssh_certificate_groups (target_id, serial, user_id, session_id, principals, valid_before)
       SELECT t.id, nextval('ssh_certificate_serial'), u, gen_random_uuid(), t.principals, now() + interval '8 hours'
       FROM access_targets t CROSS JOIN unnest($2::uuid[]) u WHERE t.id = $1`,
      [targetId, ids],
    );
    return ids;
  }

  it('comes after the end of what the people of the small group hold', async () => {
    const { client: dave } = await app.enrolled('dave@endings.example');
    const path = await addHostGroup(admin, 'crowded');
    const holders = await addHolders(path.split('/')[2] ?? '', 1_000);
    const [organization] = await rows<{ org_id: string }>(
      app.dataSource,
      'SELECT org_id FROM users WHERE id = $1',
      [bob],
    );
    const newGroup = (name: string, members: readonly string[]) =>
      makeGroupRow(app.dataSource, organization?.org_id ?? '', name, members);
    const big = { group: await newGroup('Big', holders) };
    const small = { group: await newGroup('Small', [await idOf(app, 'dave@endings.example')]) };
    expect((await putRule(admin, path, { assignments: [big, small] })).status).toBe(200);
    const { serial, principals } = await issue(dave);
    expect(principals.join()).toContain('deploy@crowded:');

    // Stops the worker, so that only the request itself can revoke the certificate.
    await app.nest.get(AccessEndings, { strict: false }).stopWork();
    expect((await putRule(admin, path, { assignments: [big] })).status).toBe(200);
    expect(await isRevoked(serial)).toBe(true);
  });
});
