import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { MONTH_BOUNDS } from '#domain/admin/clean-up/audit-months.repository.js';
import { CleanUp } from '#domain/admin/clean-up/clean-up.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { count, rows } from '../../support/rows.js';

/**
 * Returns the end of an SQL expression that begins with a quotation mark: the name of a class's
 * partition for the month `ago` months before this one.
 */
const monthOf = (kind: string, ago: number) =>
  `audit_events_${kind}_' || to_char(date_trunc('month', now(), 'UTC') AT TIME ZONE 'UTC' - interval '${ago} months', 'YYYY_MM')`;

describe('the months of the audit log', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({
      environment: {
        SVC_CLEANUP_INTERVAL: '0',
        SVC_AUTH_EVENTS_RETENTION_DAYS: '100',
        SVC_OAUTH_EVENTS_RETENTION_DAYS: '200',
      },
    });
  });
  afterAll(() => app.close());
  beforeEach(() => cleanUp());

  const cleanUp = () => app.nest.get(CleanUp, { strict: false }).run();
  const query = (text: string) => rows(app.dataSource, text);
  const write = (kind: string, ago: string) =>
    query(`INSERT INTO audit_events (id, type, class, created_at)
           SELECT gen_random_uuid(), 'of a test', '${kind}', now() - interval '${ago}'`);
  const exists = async (kind: string, ago: number) => {
    const found = await rows<{ name: string | null }>(
      app.dataSource,
      `SELECT to_regclass('${monthOf(kind, ago)})::text AS name`,
    );
    return found[0]?.name !== null;
  };
  const make = (kind: string, ago: number) =>
    query(
      `SELECT make_audit_month('${kind}', date_trunc('month', now(), 'UTC') - interval '${ago} months')`,
    );
  const ofTest = () => count(app.dataSource, `audit_events WHERE type = 'of a test'`);

  it('are this one and the next one, from the start', async () => {
    for (const kind of ['auth', 'oauth']) {
      expect([await exists(kind, 0), await exists(kind, -1)]).toEqual([true, true]);
    }
    expect(await exists('admin', 0)).toBe(false);
  });

  it('are made for events that had none, which move there', async () => {
    const before = await ofTest();
    await write('oauth', '40 days');
    await write('auth', '40 days');
    await query(`INSERT INTO audit_events (id, type, class, created_at)
      VALUES (gen_random_uuid(), 'of a test', 'oauth', '2199-12-31 23:59:59+00'), (gen_random_uuid(), 'of a test', 'oauth', '2200-01-01 00:00:00+00')`);
    expect(await count(app.dataSource, 'audit_events_oauth_other')).toBe(3);
    expect(await cleanUp()).toEqual({});
    expect(await count(app.dataSource, 'audit_events_auth_other')).toBe(0);
    // the partition for times after the year 2199
    expect(await count(app.dataSource, 'audit_events_oauth_other')).toBe(1);
    expect(await count(app.dataSource, 'audit_events_oauth_2199_12')).toBe(1);
    expect(await ofTest()).toBe(before + 4);
  });

  it('are dropped when each of their events is past the retention of its class', async () => {
    for (const kind of ['auth', 'oauth']) for (const ago of [6, 9]) await make(kind, ago);
    await make('admin', 9);
    for (const kind of ['auth', 'oauth', 'admin']) {
      for (const ago of ['6 months', '9 months']) await write(kind, ago);
    }
    expect(await cleanUp()).toEqual({ auditMonths: 3 });
    const kept = [await exists('auth', 6), await exists('oauth', 6), await exists('oauth', 9)];
    expect(kept).toEqual([false, true, false]);
    expect(await count(app.dataSource, `audit_events_admin WHERE type = 'of a test'`)).toBe(2);
  });

  it('are not made for more events than can be moved at once, which stay where they are', async () => {
    const { moved } = MONTH_BOUNDS;
    MONTH_BOUNDS.moved = 2;
    try {
      for (let n = 0; n < 3; n += 1) await write('oauth', '75 days');
      const kept = await count(app.dataSource, 'audit_events_oauth_other');
      await write('auth', '75 days');
      await cleanUp();
      expect(await count(app.dataSource, 'audit_events_oauth_other')).toBe(kept);
      expect(await count(app.dataSource, 'audit_events_auth_other')).toBe(0);
      expect(app.log.join('')).toContain('stay in the default partition');
    } finally {
      MONTH_BOUNDS.moved = moved;
    }
    await query(`DELETE FROM audit_events_oauth_other WHERE created_at < now()`);
  });

  it('lose the events past the retention while the others stay', async () => {
    await make('auth', 3);
    await write('auth', '99 days');
    await write('auth', '101 days');
    expect(await cleanUp()).toEqual({ authEvents: 1 });
  });

  it('keep their events if a retention is asked for that they are not past', async () => {
    await make('oauth', 4);
    await expect(
      query(
        `SELECT drop_audit_month('oauth', to_char(now() - interval '4 months', 'YYYY-MM'), 200) AS d`,
      ),
    ).resolves.toEqual([{ d: false }]);
    await expect(query(`SELECT drop_audit_month('admin', '2020-01', 0) AS d`)).resolves.toEqual([
      { d: false },
    ]);
  });

  it('are dropped and made, with other expired rows, although one month cannot be dropped', async () => {
    for (const ago of [8, 9]) await make('auth', ago);
    await query(`DO $$ BEGIN
      EXECUTE format('CREATE VIEW of_an_operator AS SELECT id FROM %I', '${monthOf('auth', 9)});
      EXECUTE format('DROP TABLE %I', '${monthOf('oauth', -1)});
    END $$`);
    await query(
      `INSERT INTO spent_tokens (id, expires_at) VALUES (gen_random_uuid(), now() - interval '1 s')`,
    );
    await expect(cleanUp()).rejects.toThrow('other objects depend on it');
    expect([await exists('auth', 9), await exists('auth', 8)]).toEqual([true, false]);
    expect(await exists('oauth', -1)).toBe(true);
    expect(await count(app.dataSource, 'spent_tokens')).toBe(0);
    await query('DROP VIEW of_an_operator');
    expect(await cleanUp()).toEqual({ auditMonths: 1 });
  });

  it('wait for a reader without keeping writers waiting, and are dropped later', async () => {
    await make('oauth', 10);
    const reader = app.dataSource.createQueryRunner();
    await reader.startTransaction();
    await reader.query('SELECT count(*) FROM audit_events');
    let isDone = false;
    const dropped = cleanUp().finally(() => (isDone = true));
    let longest = 0;
    for (let n = 0; n < 40; n += 1) {
      const begun = performance.now();
      await write('oauth', '0 days');
      longest = Math.max(longest, performance.now() - begun);
    }
    expect(isDone).toBe(false);
    await reader.rollbackTransaction();
    await reader.release();
    expect(await dropped).toEqual({ auditMonths: 1 });
    expect(longest).toBeLessThan(1_000);
  });

  it('lose no event that is read or written while its month is made', async () => {
    const writeOn = (day: number) =>
      query(`INSERT INTO audit_events (id, type, class, created_at)
             VALUES (gen_random_uuid(), 'of a test', 'oauth', '2024-03-${day}')`);
    const ofDay = (day: number) =>
      count(app.dataSource, `audit_events WHERE created_at = '2024-03-${day}'`);
    await writeOn(10);
    const maker = app.dataSource.createQueryRunner();
    await maker.startTransaction();
    await maker.query(`SELECT make_audit_month('oauth', '2024-03-01')`);
    const read = ofDay(10);
    const written = writeOn(20);
    const isWaiting = `pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
    await expect.poll(() => count(app.dataSource, isWaiting)).toBe(2);
    await maker.commitTransaction();
    await maker.release();
    expect(await read).toBe(1);
    await written;
    expect(await ofDay(20)).toBe(1);
  });
});

describe('the months of the audit log without a clean-up', () => {
  let app: TestApp;
  beforeAll(async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    app = await startTestApp({ environment: { SVC_CLEANUP_INTERVAL: '0' } });
  });
  afterAll(async () => {
    vi.useRealTimers();
    await app.close();
  });

  it('are made all the same, and no row is deleted', async () => {
    const next = `SELECT to_regclass('${monthOf('oauth', -1)}) IS NOT NULL AS is_there`;
    // A run that began in the last month has no table of the next month yet.
    await rows(
      app.dataSource,
      `DO $$ BEGIN EXECUTE format('DROP TABLE IF EXISTS %I', '${monthOf('oauth', -1)}); END $$`,
    );
    await rows(
      app.dataSource,
      `INSERT INTO spent_tokens (id, expires_at) VALUES (gen_random_uuid(), now() - interval '1 s')`,
    );
    vi.advanceTimersByTime(900_000);
    await vi.waitFor(async () => {
      expect(await rows(app.dataSource, next)).toEqual([{ is_there: true }]);
    }, 90_000);
    expect(await count(app.dataSource, 'spent_tokens')).toBe(1);
  });
});

describe('SSH certificates that expired', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({
      environment: { SVC_CLEANUP_INTERVAL: '0', SVC_OAUTH_EVENTS_RETENTION_DAYS: '20' },
    });
  });
  afterAll(() => app.close());

  const write = (serial: number, issued: string) =>
    rows(
      app.dataSource,
      `INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint, valid_after, valid_before, issued_at)
       SELECT $1, gen_random_uuid(), gen_random_uuid(), 'k', '{p}', 'SHA256:k', 'SHA256:c', t, t + interval '8 hours', t
       FROM (SELECT now() - $2::interval AS t) t`,
      [serial, issued],
    );
  const serials = async () =>
    (
      await rows<{ serial: string }>(
        app.dataSource,
        'SELECT serial FROM ssh_certificates ORDER BY serial',
      )
    ).map(({ serial }) => Number(serial));
  const cleanUp = () => app.nest.get(CleanUp, { strict: false }).run();

  it('leave after the retention, but for those with the highest serials', async () => {
    for (const [serial, issued] of [
      [1, '30 days'],
      [2, '21 days'],
      [3, '20 days'],
    ] as const) {
      await write(serial, issued);
    }
    expect(await cleanUp()).toEqual({ sshCertificates: 1 });
    expect(await serials()).toEqual([2, 3]);
    await write(4, '19 days');
    await write(5, '18 days 23 hours 59 minutes');
    expect(await cleanUp()).toEqual({ sshCertificates: 1 });
    // Certificate 3 is past the retention but stays: a failover reads the newest certificate, and
    // the newest that is two minutes older.
    expect(await serials()).toEqual([3, 4, 5]);
  });
});
