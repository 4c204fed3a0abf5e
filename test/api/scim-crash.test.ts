import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { runScript } from '../support/child-script.js';
import { Client, newAddress } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import type { ReplicaAnswer, ReplicaArgument } from '../support/replica.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { count, rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

/** The lock at which each step of a de-provisioning waits. The statement takes the lock in its own transaction. */
const STEPS = {
  'before anything': 'SELECT FROM users WHERE id = $1 FOR UPDATE',
  'at the sessions': 'SELECT FROM sessions WHERE user_id = $1 FOR UPDATE',
  'at the certificates': 'SELECT FROM ssh_certificates WHERE user_id = $1 FOR UPDATE',
  'at the keys': 'SELECT FROM authenticators WHERE user_id = $1 FOR UPDATE',
  'at the audit log': `SELECT $1::uuid FROM (SELECT pg_advisory_xact_lock(1)) l`,
} as const;

describe('a server that is killed in the middle of a de-provisioning', () => {
  let database: TestDatabase;
  let app: TestApp;
  let organization: ScimOrganization;
  let environment: Record<string, string>;
  let folder: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    folder = await makeTemporaryDirectory();
    environment = { SVC_SSH_CA_KEY_PATH: join(folder, 'ssh_ca_key') };
    app = await startTestApp({ database, environment });
    organization = await foundOrganization(app, 'crash.example');
    // The audit row is the last statement: advisory lock 1 delays it.
    await app.dataSource.query(`
      CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END $$`);
    await app.dataSource.query(`
      CREATE TRIGGER wait_for_the_test BEFORE INSERT ON audit_events FOR EACH ROW
        WHEN (NEW.type = 'scim_operation') EXECUTE FUNCTION wait_for_the_test()`);
  });
  afterAll(async () => {
    await app.close();
    await database.drop();
    await removeDirectory(folder);
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

  it.each(
    Object.entries(STEPS).flatMap(([step, lock]) =>
      (['DELETE', 'PATCH'] as const)
        .filter((how) => how === 'DELETE' || step !== 'at the keys') // a deactivation keeps the keys
        .map((how) => ({ step, lock, how })),
    ),
  )(
    '$step of $how changes nothing, and a retry removes everything',
    async ({ lock, how, step }) => {
      const email = `${createHash('sha256')
        .update(step + how)
        .digest('hex')
        .slice(0, 8)}@crash.example`;
      const { id } = (await organization.scim('POST', '/Users', { userName: email })).json as {
        id: string;
      };
      const { client } = await app.enrolled(email);
      const body = { public_key: newPublicKeyLine() };
      expect((await client.post('/v1/credentials/ssh', body)).status).toBe(200);
      const whole = await access(id);
      expect(whole).toMatchObject({ users: 1, keys: 1, certificates: 1, audited: 0 });

      const argument: ReplicaArgument = { database: { url: database.url }, environment };
      const server = runScript<ReplicaAnswer>('replica.ts', argument);
      const { baseUrl } = await server.answer;
      const send = (base: string) =>
        new Client(base).send(how, `/scim/v2/Users/${id}`, {
          address: newAddress(),
          headers: { authorization: `Bearer ${organization.token}`, origin: '' },
          ...(how === 'PATCH'
            ? { body: { Operations: [{ op: 'replace', path: 'active', value: false }] } }
            : {}),
        });
      const holder = app.dataSource.createQueryRunner();
      await holder.startTransaction();
      await holder.query(lock, [id]);
      const cutOff = send(baseUrl).catch(() => 'no answer');
      await untilWaiting(app.dataSource, 1);
      await server.kill();
      expect(await cutOff).toBe('no answer');
      await holder.rollbackTransaction();
      await holder.release();
      // PostgreSQL notices the disconnected client, and rolls its work back.
      const others = `pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`;
      await expect.poll(() => count(app.dataSource, others)).toBe(0);
      expect(await access(id)).toEqual(whole);

      const again = await send(app.baseUrl);
      expect(again.status).toBe(how === 'DELETE' ? 204 : 200);
      expect(await access(id)).toEqual({
        users: 0,
        sessions: 0,
        keys: how === 'DELETE' ? 0 : 1,
        certificates: 0,
        audited: 1,
      });
      const [left] = await rows(
        app.dataSource,
        'SELECT revoked_by FROM ssh_certificates WHERE user_id = $1',
        [id],
      );
      expect(left).toEqual({ revoked_by: 'scim' });
    },
  );
});
