import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FailoverSetting } from '#domain/admin/database-failover/decision.js';
import { FAILOVER_LIMITS } from '#domain/admin/database-failover/failover-limits.js';
import type { EnrolledUser, TestApp } from '../support/app.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { orgApi } from '../support/org-api.js';
import { passGround } from '../support/passes.js';
import { adminCommand, handTo } from '../support/break-glass.js';
import { FailoverWorld, issueCertificate } from '../support/failover-world.js';

const NOTHING_LOST = { change: 'another server', loss: 'none', ended_everything: false };
const PROVED = { loss: 'proved', ended_everything: true };

describe('a change of the PostgreSQL behind running processes', () => {
  let world: FailoverWorld;
  let app: TestApp;
  let other: TestApp;
  let user: EnrolledUser;

  beforeAll(async () => {
    world = await FailoverWorld.open();
    app = await world.start();
    other = await world.start();
  });
  afterAll(() => world.close());
  afterEach(() => world.removeSilentReplicas());
  beforeEach(async () => {
    await ready();
    await world.query("DELETE FROM audit_events WHERE type = 'database_confirmed'");
    user = await app.enrolled(`${randomUUID()}@example.com`);
    app.log.length = 0;
  });

  const issued = async () => (await issueCertificate(user)).status;
  const ready = async () => {
    for (const each of [app, other]) {
      await expect.poll(async () => (await each.client().get('/health/ready')).status).toBe(200);
    }
  };

  it('ends no session of a planned switchover that lost nothing', async () => {
    expect(await issued()).toBe(200);
    await world.promote();
    await expect.poll(() => world.confirmations()).toMatchObject([NOTHING_LOST]);
    await ready();
    expect(await issued()).toBe(200);
    await expect.poll(() => app.log.join('')).toContain('no commit is missing');
    expect(await world.query('SELECT replica_id FROM replica_reports')).toEqual([]);
  });

  it('goes on if the first heartbeat after a confirmation fails', async () => {
    await world.query(`
      CREATE SEQUENCE beats;
      CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF nextval('beats') <= 2 THEN RAISE EXCEPTION 'planted' USING ERRCODE = '57P01'; END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER fail_once BEFORE INSERT ON replicas FOR EACH ROW EXECUTE FUNCTION fail_once();
      UPDATE database_identity SET started_at = started_at - interval '1 hour'`);
    await expect
      .poll(() => app.log.concat(other.log).join(''), { timeout: 10_000 })
      .toContain('planted');
    await world.query('DROP FUNCTION fail_once CASCADE; DROP SEQUENCE beats');
    await ready();
    expect(await issued()).toBe(200);
  });

  it('ends no session of a restart', async () => {
    await world.restart();
    await expect
      .poll(() => world.confirmations())
      .toMatchObject([{ change: 'restart', ended_everything: false }]);
    await ready();
    expect(await issued()).toBe(200);
  });

  it('ends all access, once, if a committed audit row of one process is missing', async () => {
    expect(await issued()).toBe(200);
    await world.loseTheLastCommit('promote');
    await expect.poll(() => world.confirmations()).toMatchObject([PROVED]);
    expect(await world.sessions()).toBe(0);
    await ready();
    expect(await issued()).toBe(401);
    const [identity] = await world.query('SELECT reconciled_at FROM database_identity');
    expect(identity?.['reconciled_at']).toBeInstanceOf(Date);
    expect(await world.query('SELECT FROM ssh_revoked_ranges WHERE first_serial = 1')).toHaveLength(
      1,
    );
    // A certificate of before may be valid for 12 hours, if SVC_SESSION_HOURS was greater then.
    const [range] = await world.query<{ hours: number }>(
      `SELECT round(extract(epoch FROM carried_until - recorded_at) / 3600)::int AS hours FROM ssh_revoked_ranges`,
    );
    expect(range).toEqual({ hours: 13 });
    const log = app.log.join('');
    expect(log).toMatch(/\d+ audit rows/);
    expect(log).toContain('the database lost commits: all sessions');

    // The commits that are known to be lost do not prove a second loss after the next promotion.
    await world.promote();
    await expect.poll(() => world.confirmations()).toMatchObject([PROVED, NOTHING_LOST]);
  });

  it('ends all access after a crash that lost commits on the same timeline', async () => {
    await world.loseTheLastCommit('restart');
    await expect
      .poll(() => world.confirmations())
      .toMatchObject([{ ...PROVED, change: 'restart' }]);
    expect(await world.sessions()).toBe(0);
  });

  it('does a change of dist/admin.js again that was lost after one heartbeat', async () => {
    const [{ email } = { email: '' }] = await world.query<{ email: string }>(
      'SELECT email FROM users WHERE id = (SELECT user_id FROM authenticators ORDER BY created_at DESC LIMIT 1)',
    );
    await handTo(world.direct, 'production');
    const command = ['revoke-everything', email, '--yes'];
    const done = await adminCommand(command, { url: world.database.url });
    await handTo(world.direct, 'test');
    expect(done).toMatchObject({ status: 0 });
    expect(done.stderr).not.toContain('No running process');

    const [lost] = await world.query<{ id: string }>(
      "SELECT id FROM audit_events WHERE details ->> 'by' = 'operator'",
    );
    await world.loseTheLastCommit('promote');
    await expect.poll(() => world.confirmations()).toMatchObject([PROVED]);
    const again = "SELECT type FROM audit_events WHERE details ->> 'database_lost' = $1";
    expect(await world.query(again, [lost?.id])).toEqual([{ type: 'admin_revoke_credentials' }]);
  });

  it('lets no command of the operator change a server that is not confirmed', async () => {
    await world.addSilentReplica(); // its report is awaited, so that the server stays unconfirmed
    await handTo(world.direct, 'production');
    await world.promote();
    const refused = await adminCommand(['list-admins'], { url: world.database.url });
    await handTo(world.direct, 'test');
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    expect(refused.stderr).toContain('no service has confirmed it yet');
  });

  it('issues nothing until every running process has reported', async () => {
    const silent = await world.addSilentReplica();
    await world.promote();
    await expect.poll(async () => (await app.client().get('/health/ready')).status).toBe(503);
    const refused = await issueCertificate(user);
    expect([refused.status, refused.json.code]).toEqual([503, 'unavailable']);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect((await app.client().get('/health')).status).toBe(200);
    const found = { is_witness: true, is_lost: false };
    await expect
      .poll(() => world.query('SELECT is_witness, is_lost FROM replica_reports'))
      .toEqual([found, found]);
    expect(await world.isConfirmed()).toBe(false);

    await world.report(silent, true);
    await expect.poll(() => world.isConfirmed()).toBe(true);
    expect(await world.confirmations()).toMatchObject([PROVED]);
    await ready();
    expect(await issued()).toBe(401);
  });

  it('waits for a limited time from the first report on, so that a process that died stops nothing', async () => {
    await world.addSilentReplica();
    await world.promote();
    await expect.poll(() => world.query('SELECT FROM replica_reports')).toHaveLength(2);
    expect(await world.isConfirmed()).toBe(false);
    await world.query("UPDATE replica_reports SET reported_at = reported_at - interval '1 hour'");
    await expect.poll(() => world.confirmations()).toMatchObject([NOTHING_LOST]);
    expect([FAILOVER_LIMITS.patience, FAILOVER_LIMITS.recent]).toEqual([30_000, 30_000]);
  });

  it('does not wait for a process that was last seen long before the others', async () => {
    await world.addSilentReplica(31);
    await world.promote();
    await expect.poll(() => world.confirmations()).toMatchObject([NOTHING_LOST]);
  });

  it('is proved by a process that finds its commits missing after others have confirmed', async () => {
    await world.loseTheLastCommit('confirmed by others');
    await expect.poll(() => world.confirmations()).toMatchObject([PROVED]);
    expect(await world.sessions()).toBe(0);
  });

  it('is proved once by the loss of an earlier confirmation, as after two promotions within one lag', async () => {
    await world.loseTheLastCommit('with the confirmation');
    await expect.poll(() => world.confirmations()).toMatchObject([PROVED]);
    expect(app.log.join('')).toContain('the confirmation of an earlier start');
    // The application finds its own commits missing, too. They prove the same loss, and end nothing
    // a second time.
    await ready();
    expect(await world.confirmations()).toHaveLength(1);
  });

  it('is proved by an old heartbeat, so that an idle process notices a restored backup', async () => {
    const newest = async () => {
      const [row] = await world.query<{ at: string }>(
        'SELECT (extract(epoch FROM min(seen_at)) * 1000)::float8 AS at FROM replicas',
      );
      return Number(row?.at);
    };
    const before = await newest();
    await expect.poll(newest).toBeGreaterThan(before + 150);
    await world.direct.transaction(async (tx) => {
      // Locks the table rather than the row: a heartbeat that waited for the row would undo this
      // change.
      await tx.query('LOCK TABLE replicas IN ACCESS EXCLUSIVE MODE');
      await tx.query("UPDATE replicas SET seen_at = seen_at - interval '1 hour'");
      await tx.query("UPDATE database_identity SET started_at = started_at - interval '1 hour'");
    });
    await expect.poll(() => world.confirmations()).toMatchObject([PROVED]);
    expect(app.log.join('')).toContain('a heartbeat of a minute ago');
  });

  it('compares a copy of the database that has the same start time', async () => {
    await world.query('UPDATE database_identity SET database_oid = 1');
    await expect.poll(() => world.confirmations()).toMatchObject([NOTHING_LOST]);
    await ready();
    expect(await issued()).toBe(200);
  });

  it('deletes the row of a process that stops, and keeps that of one that runs', async () => {
    await world.query(
      "DELETE FROM replicas WHERE seen_at < clock_timestamp() - interval '5 seconds'",
    );
    await expect.poll(() => world.query('SELECT FROM replicas')).toHaveLength(2);
    await other.close();
    expect(await world.query('SELECT FROM replicas')).toHaveLength(1);
  });
});

describe('a process that reports after the others have ended all access', () => {
  let world: FailoverWorld;

  beforeAll(async () => {
    world = await FailoverWorld.open();
  });
  afterAll(() => world.close());

  it('does its removal again, and ends no access a second time', async () => {
    const late = await world.start();
    const [row] = await world.query<{ id: string }>('SELECT id FROM replicas');
    const { ada, ids } = await passGround(late, 'late.example');
    const early = await world.start();
    await early.enrolled('early@example.com');
    expect((await orgApi(ada, 'POST', `/members/${ids.bob}/deactivate`)).status).toBe(200);
    const isActive = async () => {
      const [bob] = await world.query<{ active: boolean }>(
        'SELECT active FROM users WHERE id = $1',
        [ids.bob],
      );
      return bob?.active;
    };
    expect(await isActive()).toBe(false);

    // A lock makes the heartbeat of the late process wait, as if its server had vanished.
    const holding = world.direct.createQueryRunner();
    await holding.startTransaction();
    await holding.query('SELECT FROM replicas WHERE id = $1 FOR UPDATE', [row?.id]);
    await untilWaiting(world.direct, 1);
    await world.direct.transaction(async (tx) => {
      await tx.query(
        `DELETE FROM audit_events WHERE type = 'admin_deactivate' OR xmin IN (
           SELECT e.xmin FROM audit_events e JOIN users u ON u.id = e.subject_id WHERE u.email = 'early@example.com')`,
      );
      await tx.query('UPDATE users SET active = true WHERE id = $1', [ids.bob]);
      await tx.query(
        "UPDATE database_identity SET started_at = started_at - interval '1 hour', timeline = 'FFFFFFFF'",
      );
    });
    await expect.poll(() => world.query('SELECT FROM replica_reports')).toHaveLength(2);
    await world.query("UPDATE replica_reports SET reported_at = reported_at - interval '1 hour'");
    await expect.poll(() => world.confirmations()).toMatchObject([PROVED]);
    expect(await isActive()).toBe(true);
    await expect.poll(async () => (await early.client().get('/health/ready')).status).toBe(200);
    const after = await early.enrolled('after@example.com');
    await holding.commitTransaction();
    await holding.release();

    await expect.poll(isActive).toBe(false);
    await expect.poll(async () => (await late.client().get('/health/ready')).status).toBe(200);
    expect(await world.confirmations()).toMatchObject([PROVED]);
    expect((await after.client.get('/v1/sessions')).status).toBe(200);
  });
});

describe('a change of the PostgreSQL while no process runs', () => {
  let world: FailoverWorld;

  beforeAll(async () => {
    world = await FailoverWorld.open();
    const app = await world.start();
    await app.enrolled('ada@example.com');
    await app.close();
  });
  afterAll(() => world.close());
  afterEach(() => world.removeSilentReplicas());
  beforeEach(async () => {
    await world.query("DELETE FROM audit_events WHERE type = 'database_confirmed'");
  });

  const confirm = (setting?: FailoverSetting) => world.confirmAtStart(setting);

  it('ends nothing of a restart, without a wait', async () => {
    await world.restart();
    await confirm();
    expect(await world.confirmations()).toMatchObject([
      { change: 'restart', loss: 'unknown', ended_everything: false },
    ]);
  });

  it('goes on at once after a process of the service died, since the server is confirmed', async () => {
    await world.addSilentReplica();
    await confirm();
    expect(await world.confirmations()).toEqual([]);
  });

  it('ends nothing on another timeline if the standbys replicate synchronously', async () => {
    await world.promote();
    await confirm('synchronous');
    expect(await world.sessions()).toBeGreaterThan(0);
    expect(await world.confirmations()).toMatchObject([
      { loss: 'unknown', ended_everything: false },
    ]);
    expect(await world.query('SELECT FROM ssh_revoked_ranges')).toHaveLength(1);
  });

  it('makes a process that starts meanwhile no witness, so that all access ends as if a commit were missing', async () => {
    await world.addSilentReplica();
    await world.promote();
    const confirmed = confirm();
    await expect
      .poll(() => world.query('SELECT is_witness FROM replica_reports'))
      .toEqual([{ is_witness: false }]);
    expect(await world.sessions()).toBeGreaterThan(0);
    await world.removeSilentReplicas();
    await confirmed;
    expect(await world.sessions()).toBe(0);
    expect(await world.confirmations()).toMatchObject([
      { loss: 'unknown', ended_everything: true },
    ]);
  });

  it('does not wait for earlier processes of an embedded database, which only one can use', async () => {
    await world.addSilentReplica();
    await world.restart();
    await world.confirmAtStart(undefined, true);
    expect(await world.confirmations()).toMatchObject([{ ended_everything: false }]);
  });
});
