import { join } from 'node:path';
import { DataSource, type QueryRunner } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { runScript } from '../support/child-script.js';
import { Client, newAddress } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import type { ReplicaAnswer, ReplicaArgument } from '../support/replica.js';
import { count, rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

/**
 * For each step of a de-provisioning: the statement by which another transaction takes the lock at
 * which the step then waits.
 */
const STEPS = {
  'before anything': 'SELECT FROM users WHERE id = $1 FOR UPDATE',
  'at the sessions': 'SELECT FROM sessions WHERE user_id = $1 FOR UPDATE',
  'at the certificates': 'SELECT FROM ssh_certificates WHERE user_id = $1 FOR UPDATE',
  'at the keys': 'SELECT FROM authenticators WHERE user_id = $1 FOR UPDATE',
  'at the audit log': 'SELECT pg_advisory_xact_lock(hashtext($1::text))',
} as const;

const CASES = Object.entries(STEPS).flatMap(([step, lock]) =>
  (['DELETE', 'PATCH'] as const)
    // a deactivation (PATCH) deletes no keys
    .filter((how) => how === 'DELETE' || step !== 'at the keys')
    .map((how) => ({ step, lock, how })),
);

type Case = (typeof CASES)[number];

/**
 * The cases that are tested together, with one killed server. The last steps run alone, because
 * their transaction holds a lock for which the other requests would wait.
 */
const GROUPS: readonly (readonly Case[])[] = [
  CASES.filter(({ step }) => step !== 'at the keys' && step !== 'at the audit log'),
  ...CASES.filter(({ step }) => step === 'at the keys' || step === 'at the audit log').map(
    (each) => [each],
  ),
];

const SOON = { timeout: 90_000, interval: 10 };

/**
 * A member whose de-provisioning waits at a lock when its server is killed. `whole` is the access
 * before.
 */
interface Leaver {
  readonly id: string;
  readonly whole: object;
  readonly organization: ScimOrganization;
}

describe('a server that is killed in the middle of a de-provisioning', () => {
  let database: TestDatabase;
  let app: TestApp;
  let environment: Record<string, string>;
  let folder: string;
  const leavers = new Map<Case, Leaver>();

  beforeAll(async () => {
    database = await createTestDatabase();
    folder = await makeTemporaryDirectory();
    environment = { SVC_SSH_CA_KEY_PATH: join(folder, 'ssh_ca_key') };
    app = await startTestApp({ database, environment });
    // The audit event is the last statement. This trigger makes its INSERT wait for an advisory
    // lock on the id of the member.
    await app.dataSource.query(`
      CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM pg_advisory_xact_lock_shared(hashtext(NEW.details->>'resource_id'));
          RETURN NEW;
        END $$`);
    await app.dataSource.query(`
      CREATE TRIGGER wait_for_the_test BEFORE INSERT ON audit_events FOR EACH ROW
        WHEN (NEW.type = 'scim_operation') EXECUTE FUNCTION wait_for_the_test()`);
    for (const [index, each] of CASES.entries()) leavers.set(each, await newLeaver(index));
    for (const group of GROUPS) await killInTheMiddle(group);
  });
  afterAll(async () => {
    await app.close();
    await database.drop();
    await removeDirectory(folder);
  });

  /** Creates a member in a new organization, so that no de-provisioning waits for another one. */
  async function newLeaver(index: number): Promise<Leaver> {
    const domain = `crash-${index}.example`;
    const organization = await foundOrganization(app, domain);
    const userName = `leaver@${domain}`;
    const { id } = (await organization.scim('POST', '/Users', { userName })).json as { id: string };
    const { client } = await app.enrolled(userName);
    const body = { public_key: newPublicKeyLine() };
    expect((await client.post('/v1/credentials/ssh', body)).status).toBe(200);
    const whole = await access(id);
    expect(whole).toMatchObject({ users: 1, keys: 1, certificates: 1, audited: 0 });
    return { id, whole, organization };
  }

  /**
   * Sends the request of each case to one server, and kills the server when each waits at the lock
   * of its step.
   */
  async function killInTheMiddle(cases: readonly Case[]): Promise<void> {
    const holding = new DataSource({ type: 'postgres', url: database.url, poolSize: cases.length });
    await holding.initialize();
    const argument: ReplicaArgument = {
      database: { url: database.url },
      environment: { ...environment, SVC_DB_MAX_CONNECTIONS: '20' },
    };
    const server = runScript<ReplicaAnswer>('replica.ts', argument);
    const { baseUrl } = await server.answer;
    const killed = cases.map((each) => ({ ...each, leaver: leaverOf(each) }));
    const holders: number[] = [];
    const runners: QueryRunner[] = [];
    for (const { lock, leaver } of killed) {
      const runner = holding.createQueryRunner();
      runners.push(runner);
      await runner.startTransaction();
      await runner.query(lock, [leaver.id]);
      const [own] = (await runner.query('SELECT pg_backend_pid() AS pid')) as { pid: number }[];
      holders.push(own?.pid ?? 0);
    }
    // A statement waits at most 5 seconds for a lock. So the server is warmed up by a first
    // request, and then all requests begin together.
    const users = (organization: ScimOrganization) =>
      new Client(baseUrl).get('/scim/v2/Users', { headers: bearer(organization) });
    await Promise.all(killed.map(({ leaver }) => users(leaver.organization)));
    const cutOff = killed.map(({ how, leaver }) =>
      send(baseUrl, how, leaver).catch(() => 'no answer'),
    );
    const blocked = `pg_stat_activity WHERE pg_blocking_pids(pid) && $1::int[]`;
    const areBlocked = () => count(app.dataSource, blocked, [holders]);
    await vi.waitUntil(async () => (await areBlocked()) === cases.length, SOON);
    await server.kill();
    expect(await Promise.all(cutOff)).toEqual(cases.map(() => 'no answer'));
    for (const runner of runners) {
      await runner.rollbackTransaction();
      await runner.release();
    }
    await holding.destroy();
    // Waits until PostgreSQL has noticed the lost connections and rolled their transactions back.
    const others = `pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`;
    await vi.waitUntil(async () => (await count(app.dataSource, others)) === 0, SOON);
  }

  function leaverOf(each: Case): Leaver {
    const leaver = leavers.get(each);
    if (!leaver) throw new Error('the case was not prepared');
    return leaver;
  }

  const bearer = ({ token }: ScimOrganization) => ({
    authorization: `Bearer ${token}`,
    origin: '',
  });
  const send = (base: string, how: 'DELETE' | 'PATCH', { id, organization }: Leaver) =>
    new Client(base).send(how, `/scim/v2/Users/${id}`, {
      address: newAddress(),
      headers: bearer(organization),
      ...(how === 'PATCH'
        ? { body: { Operations: [{ op: 'replace', path: 'active', value: false }] } }
        : {}),
    });

  const access = async (userId: string) => ({
    users: await count(app.dataSource, 'users WHERE id = $1 AND active', [userId]),
    sessions: await count(app.dataSource, 'sessions WHERE user_id = $1', [userId]),
    keys: await count(app.dataSource, 'authenticators WHERE user_id = $1', [userId]),
    certificates: await count(
      app.dataSource,
      'ssh_certificates WHERE user_id = $1 AND revoked_at IS NULL',
      [userId],
    ),
    audited: await count(
      app.dataSource,
      `audit_events WHERE type = 'scim_operation' AND details->>'resource_id' = $1::text
       AND details->>'operation' <> 'create'`,
      [userId],
    ),
  });

  it.each(CASES)('$step of $how changes nothing, and a retry removes everything', async (each) => {
    const leaver = leavers.get(each);
    if (!leaver) throw new Error('the case was not prepared');
    const { id, whole } = leaver;
    expect(await access(id)).toEqual(whole);

    const again = await send(app.baseUrl, each.how, leaver);
    expect(again.status).toBe(each.how === 'DELETE' ? 204 : 200);
    expect(await access(id)).toEqual({
      users: 0,
      sessions: 0,
      keys: each.how === 'DELETE' ? 0 : 1,
      certificates: 0,
      audited: 1,
    });
    const [left] = await rows(
      app.dataSource,
      'SELECT revoked_by FROM ssh_certificates WHERE user_id = $1',
      [id],
    );
    expect(left).toEqual({ revoked_by: 'scim' });
  });
});
