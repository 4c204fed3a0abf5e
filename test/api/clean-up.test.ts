import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CleanUp } from '../../src/domain/admin/clean-up/clean-up.service.js';
import { ADVISORY_LOCKS } from '../../src/platform/database/statements/advisory-lock-keys.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { runScript, type ChildScript } from '../support/child-script.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { OauthRows } from '../support/oauth-rows.js';
import type { ReplicaAnswer, ReplicaArgument } from '../support/replica.js';
import { lockWaiters, untilWaiting } from '../support/lock-waiters.js';
import { count, rows } from '../support/rows.js';

/** Inserts `n` audit events of a class, created some days ago. */
async function writeEvents(
  dataSource: DataSource,
  kind: string,
  daysAgo: number,
  n = 1,
): Promise<void> {
  await rows(
    dataSource,
    `INSERT INTO audit_events (id, type, class, created_at)
     SELECT gen_random_uuid(), 'of a test', $1, now() - make_interval(days => $2) FROM generate_series(1, $3)`,
    [kind, daysAgo, n],
  );
}

async function writeSpent(dataSource: DataSource, n: number, seconds = -1): Promise<void> {
  await rows(
    dataSource,
    `INSERT INTO spent_tokens (id, expires_at)
     SELECT gen_random_uuid(), now() + make_interval(secs => $2) FROM generate_series(1, $1)`,
    [n, seconds],
  );
}

/**
 * Returns a time zone of PostgreSQL (POSIX) whose clocks were put forward by an hour five days ago.
 */
function zoneOfNewSummer(): string {
  const now = new Date();
  const today = Math.ceil((now.getTime() - Date.UTC(now.getUTCFullYear(), 0)) / 86_400_000);
  const dayIn = (days: number) => ((today + days - 1 + 365) % 365) + 1;
  return `WIN0SUM-1,J${dayIn(-5)}/0,J${dayIn(100)}/0`;
}

describe('the clean-up', () => {
  let app: TestApp;
  let oauth: OauthRows;
  beforeAll(async () => {
    app = await startTestApp({
      environment: {
        SVC_CLEANUP_INTERVAL: '0',
        SVC_AUTH_EVENTS_RETENTION_DAYS: '10',
        SVC_OAUTH_EVENTS_RETENTION_DAYS: '20',
      },
    });
    oauth = new OauthRows(app.dataSource);
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    await app.nest.get(CleanUp, { strict: false }).run();
  });

  const cleanUp = () => app.nest.get(CleanUp, { strict: false }).run();

  it('deletes the groups of hosts of expired certificates, and keeps those of valid ones', async () => {
    await rows(
      app.dataSource,
      `INSERT INTO ssh_certificate_groups (target_id, serial, user_id, session_id, principals, valid_before)
       SELECT gen_random_uuid(), n, gen_random_uuid(), gen_random_uuid(), '{}', now() + make_interval(secs => n)
       FROM unnest(ARRAY[-1, 60]) n`,
    );
    expect(await cleanUp()).toEqual({ sshCertificateGroups: 1 });
    expect(await rows(app.dataSource, 'SELECT serial FROM ssh_certificate_groups')).toEqual([
      { serial: '60' },
    ]);
  });

  it('goes on if the warning of API tokens that expire soon fails', async () => {
    const rename = (from: string, to: string) =>
      rows(app.dataSource, `ALTER TABLE api_tokens RENAME COLUMN ${from} TO ${to}`);
    await writeSpent(app.dataSource, 1);
    await rename('expiry_noted_at', 'away');
    try {
      expect(await cleanUp()).toEqual({ spentTokens: 1 });
      expect(app.log.join('')).toContain('API tokens that expire soon are not named');
    } finally {
      await rename('away', 'expiry_noted_at');
    }
  });

  it('deletes expired sessions with all that depends on them, and keeps live ones', async () => {
    const person = await oauth.user();
    const dead = await oauth.session(person, { expiresIn: -1 });
    const alive = await oauth.session(person);
    await oauth.token(person, { session: dead });
    await oauth.token(person, { session: alive });
    expect(await cleanUp()).toEqual({ sessions: 1 });
    expect(await rows(app.dataSource, 'SELECT id FROM sessions')).toEqual([{ id: alive.id }]);
    expect(await count(app.dataSource, 'oauth_grants')).toBe(1);
    expect(await count(app.dataSource, 'oauth_artifacts')).toBe(1);
  });

  it('deletes expired grants, codes, tokens and replays, consumed or not, and no others', async () => {
    const person = await oauth.user();
    const session = await oauth.session(person);
    await oauth.token(person, { session, expiresIn: { grant: -1 } });
    await oauth.token(person, { session, expiresIn: { token: -1 } });
    await oauth.token(person, { session, expiresIn: { token: -1 }, consumed: true });
    await oauth.token(person, { session, consumed: true });
    await rows(
      app.dataSource,
      `INSERT INTO oauth_replays (key, expires_at) VALUES ($1, now() - interval '1 s'), ($2, now() + interval '1 h')`,
      [randomBytes(32), randomBytes(32)],
    );
    const before = await count(app.dataSource, 'oauth_artifacts');
    expect(await cleanUp()).toEqual({ grants: 1, artifacts: 2, replays: 1 });
    // the third artifact was deleted with its expired grant, by cascade
    expect(await count(app.dataSource, 'oauth_artifacts')).toBe(before - 3);
    expect(await count(app.dataSource, 'oauth_replays')).toBe(1);
  });

  it('deletes clients that registered themselves and were not used for 30 days, and no application', async () => {
    const [unused, used] = [await oauth.client(), await oauth.client()];
    const application = await oauth.application(await oauth.user());
    await rows(
      app.dataSource,
      `UPDATE oauth_clients SET last_used_at = now() - CASE WHEN id = $1 THEN interval '29 days' ELSE interval '31 days' END`,
      [used],
    );
    expect(await cleanUp()).toEqual({ dynamicClients: 1 });
    const left = await rows<{ id: string }>(app.dataSource, 'SELECT id FROM oauth_clients');
    const ids = left.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(['svc-cli', used, application]));
    expect(ids).not.toContain(unused);
  });

  it('deletes obsolete secrets, spent tokens, counts of wrong codes and rate limits', async () => {
    const client = await oauth.application(await oauth.user());
    await rows(
      app.dataSource,
      `INSERT INTO oauth_client_secrets (id, client_id, hash, expires_at)
       VALUES ($2, $1, '\\x00', now() - interval '1 s'), ($3, $1, '\\x00', now() + interval '1 h'), ($4, $1, '\\x00', NULL)`,
      [client, randomUUID(), randomUUID(), randomUUID()],
    );
    for (const minutes of [11, 9]) {
      await rows(
        app.dataSource,
        'INSERT INTO oauth_user_code_tries VALUES ($1, 5, now() - make_interval(mins => $2))',
        [(await oauth.user()).id, minutes],
      );
    }
    await writeSpent(app.dataSource, 2);
    await writeSpent(app.dataSource, 1, 3600);
    await rows(
      app.dataSource,
      `INSERT INTO rate_limits VALUES ('general a', now() - interval '1 s', true), ('general b', now() + interval '1 h', false)`,
    );
    expect(await cleanUp()).toEqual({
      clientSecrets: 1,
      userCodeTries: 1,
      spentTokens: 2,
      rateLimits: 1,
    });
    expect(await count(app.dataSource, 'oauth_client_secrets WHERE client_id = $1', [client])).toBe(
      2,
    );
    expect(await count(app.dataSource, 'oauth_user_code_tries')).toBe(1);
    expect(await count(app.dataSource, 'spent_tokens')).toBe(1);
    expect(await count(app.dataSource, 'rate_limits')).toBe(1);
  });

  it('10.20 keeps a bucket out of debt until its bookings have lapsed', async () => {
    await rows(
      app.dataSource,
      `INSERT INTO rate_limits VALUES ('general booked', now() - interval '1 s', false, '{x}', ARRAY[now() + interval '1 s']),
                                      ('general lapsed', now() - interval '2 min', false, '{x}', ARRAY[now() - interval '2 min'])`,
    );
    await cleanUp();
    const left = await rows<{ bucket: string }>(app.dataSource, 'SELECT bucket FROM rate_limits');
    const buckets = left.map(({ bucket }) => bucket);
    expect(buckets).toContain('general booked');
    expect(buckets).not.toContain('general lapsed');
  });

  it('deletes audit events past the retention of their class, and never an administrative one', async () => {
    for (const days of [5, 15, 25, 36_500]) {
      for (const kind of ['auth', 'oauth', 'admin']) await writeEvents(app.dataSource, kind, days);
    }
    expect(await cleanUp()).toEqual({ authEvents: 3, oauthEvents: 2 });
    const left = await rows<{ class: string; n: number }>(
      app.dataSource,
      'SELECT class, count(*)::int AS n FROM audit_events GROUP BY class ORDER BY class',
    );
    expect(left).toEqual([
      { class: 'admin', n: 4 },
      { class: 'auth', n: 1 },
      { class: 'oauth', n: 2 },
    ]);
  });

  it('keeps audit events for days of 24 hours, also if a day of the database had 23', async () => {
    const database = await createTestDatabase();
    await rows(
      app.dataSource,
      `ALTER DATABASE ${database.name} SET timezone = '${zoneOfNewSummer()}'`,
    );
    const environment = { SVC_CLEANUP_INTERVAL: '0', SVC_AUTH_EVENTS_RETENTION_DAYS: '10' };
    const summer = await startTestApp({ database, environment });
    try {
      await rows(
        summer.dataSource,
        `INSERT INTO audit_events (id, type, class, created_at)
         SELECT gen_random_uuid(), 'of a test', 'auth', now() - make_interval(hours => 10 * 24, mins => late)
         FROM unnest(ARRAY[-30, 30]) late`,
      );
      expect(await summer.nest.get(CleanUp, { strict: false }).run()).toEqual({ authEvents: 1 });
    } finally {
      await summer.close();
      await database.drop();
    }
  });

  it('continues in short batches until nothing is left', async () => {
    await writeSpent(app.dataSource, 2500);
    const xact = async () => {
      const [row] = await rows<{ id: string }>(
        app.dataSource,
        'SELECT pg_current_xact_id()::text AS id',
      );
      return Number(row?.id);
    };
    const before = await xact();
    expect(await cleanUp()).toEqual({ spentTokens: 2500 });
    // at least three batches, each in a transaction of its own
    expect((await xact()) - before).toBeGreaterThan(3);
  });

  it('skips locked rows until the next run, and waits for no lock', async () => {
    await writeSpent(app.dataSource, 3);
    await app.dataSource.transaction(async (tx) => {
      await tx.query('SELECT FROM spent_tokens WHERE expires_at < now() LIMIT 1 FOR UPDATE');
      expect(await cleanUp()).toEqual({ spentTokens: 2 });
    });
    expect(await cleanUp()).toEqual({ spentTokens: 1 });
  });

  it('runs in one process at a time: a concurrent run does nothing', async () => {
    await writeSpent(app.dataSource, 5000);
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    // so that the first run still waits for this lock while the other runs try
    await holder.query('LOCK TABLE spent_tokens IN EXCLUSIVE MODE');
    const first = cleanUp();
    await untilWaiting(app.dataSource, 1);
    expect(await Promise.all(Array.from({ length: 4 }, cleanUp))).toEqual(Array(4).fill(undefined));
    await holder.rollbackTransaction();
    await holder.release();
    expect(await first).toEqual({ spentTokens: 5000 });
  });

  it('deletes in smaller batches if a statement exceeds its time limit', async () => {
    const run = (text: string) => rows(app.dataSource, text);
    await run(`CREATE FUNCTION exceed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF (SELECT count(*) FROM gone) > 20 THEN RAISE 'canceled' USING ERRCODE = '57014'; END IF;
      RETURN NULL; END $$`);
    await run(`CREATE TRIGGER exceed AFTER DELETE ON spent_tokens REFERENCING OLD TABLE AS gone
      FOR EACH STATEMENT EXECUTE FUNCTION exceed()`);
    await writeSpent(app.dataSource, 45);
    expect(await cleanUp()).toEqual({ spentTokens: 45 });
    await run('DROP TRIGGER exceed ON spent_tokens');
    await run('DROP FUNCTION exceed()');
  });

  it('deletes the other kinds of rows if one kind fails', async () => {
    await writeSpent(app.dataSource, 2);
    await rows(app.dataSource, 'ALTER TABLE oauth_replays RENAME TO hidden');
    await expect(cleanUp()).rejects.toThrow('oauth_replays');
    await rows(app.dataSource, 'ALTER TABLE hidden RENAME TO oauth_replays');
    expect(await count(app.dataSource, 'spent_tokens WHERE expires_at < now()')).toBe(0);
  });

  it('releases its lock when a statement fails', async () => {
    await writeSpent(app.dataSource, 1);
    await rows(app.dataSource, 'ALTER TABLE spent_tokens RENAME TO hidden');
    await expect(cleanUp()).rejects.toThrow('spent_tokens');
    await rows(app.dataSource, 'ALTER TABLE hidden RENAME TO spent_tokens');
    expect(await cleanUp()).toEqual({ spentTokens: 1 });
  });
});

describe('two processes with one database', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let replicas: ChildScript<ReplicaAnswer>[];
  beforeEach(async () => {
    database = await createTestDatabase();
    dataSource = await new DataSource({ type: 'postgres', url: database.url }).initialize();
    const { privateKey } = generateKeyPairSync('ed25519');
    const replica = (name: string): ReplicaArgument => ({
      database: { url: `${database.url}&application_name=${name}` },
      environment: {
        SVC_CLEANUP_INTERVAL: '1',
        SVC_SSH_CA_KEY: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      },
    });
    replicas = ['one', 'two'].map((name) => runScript('replica.ts', replica(name)));
    await Promise.all(replicas.map(({ answer }) => answer));
  });
  afterEach(async () => {
    await Promise.all(replicas.map((replica) => replica.finish()));
    await dataSource.destroy();
    await database.drop();
  });

  it('clean up every interval, one at a time, also after one dies', async () => {
    const spent = () => count(dataSource, 'spent_tokens');
    // Another connection holds the advisory lock of the clean-up: both replicas skip their run, and
    // neither waits.
    const holder = dataSource.createQueryRunner();
    await holder.query(`SELECT pg_advisory_lock(${ADVISORY_LOCKS.cleanUp})`);
    const [{ held } = { held: '' }] = await rows<{ held: string }>(
      dataSource,
      'SELECT clock_timestamp()::text AS held',
    );
    await writeSpent(dataSource, 2000);
    await writeEvents(dataSource, 'auth', 91);
    await writeEvents(dataSource, 'admin', 91);
    // collected over time, because a connection shows only its latest query
    const refused = new Set<string>();
    const readRefused = async () => {
      const tries = await rows<{ name: string }>(
        dataSource,
        `SELECT application_name AS name FROM pg_stat_activity
         WHERE datname = current_database() AND query_start > $1
           AND query LIKE '%pg_try_advisory_lock%' AND pid <> pg_backend_pid()`,
        [held],
      );
      for (const { name } of tries) refused.add(name);
      return [...refused].toSorted();
    };
    await expect.poll(readRefused).toEqual(['one', 'two']); // each process has tried
    expect(await spent()).toBe(2000);
    expect(await lockWaiters(dataSource)).toBe(0);
    await holder.query(`SELECT pg_advisory_unlock(${ADVISORY_LOCKS.cleanUp})`);
    await holder.release();
    await expect.poll(spent).toBe(0);
    await expect
      .poll(() => rows(dataSource, `SELECT class FROM audit_events WHERE type = 'of a test'`))
      .toEqual([{ class: 'admin' }]);

    await replicas[0]?.kill();
    await writeSpent(dataSource, 2000);
    await expect.poll(spent).toBe(0);
  });
});
