import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openMigrationConnection } from '#platform/database/connection.js';
import { migrate, migrateInBackground } from '#platform/database/migrations.js';
import { createEmptyDatabase, type TestDatabase } from '../../support/database.js';
import { earlierMigrations } from '../../support/earlier-migrations.js';
import { RecordingLog } from '../../support/recording-log.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

/** The longest that one round of {@link write} may take during the move, in milliseconds. */
const LONGEST_PAUSE = 1_000;

/**
 * Inserts 2,000 events of three classes and fourteen months. Two of three ids ascend, and the
 * others are random.
 */
const ROWS = `
  INSERT INTO audit_events (id, type, class, org_id, subject_id, subject_email, client_name, request_id, ip, details, created_at, epoch, xid)
  SELECT CASE n % 3 WHEN 0 THEN gen_random_uuid() ELSE ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid END,
         'type ' || n % 7, (ARRAY['auth', 'oauth', 'admin'])[1 + n % 3], md5((n % 5)::text)::uuid, md5((n % 11)::text)::uuid,
         CASE WHEN n % 2 = 0 THEN 'p' || n || '@org.example' END, CASE WHEN n % 4 = 0 THEN 'client' END, 'request ' || n, '10.0.0.1',
         jsonb_build_object('client_id', n), now() - n * interval '5 hours', n % 2, (n / 2)::text::xid8
  FROM generate_series(1, 2000) n`;

/** The INSERT of a replica of the previous version. */
const WRITE = `
  INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, request_id, ip, user_agent, details)
  VALUES ($1::uuid, 'login_success', $2::text, NULL, gen_random_uuid(), gen_random_uuid(), 'request', '10.0.0.2', 'agent', '{"client_id": "none"}')
  RETURNING audit_events::text AS row`;

/** The statement by which a replica of the previous version deletes events past their retention. */
const CLEAN_UP = `
  WITH expired AS MATERIALIZED (
    SELECT id FROM audit_events WHERE class = 'auth' AND class <> 'admin' AND created_at < now() - interval '60 days'
    ORDER BY created_at LIMIT 3 FOR UPDATE SKIP LOCKED
  ) DELETE FROM audit_events t USING expired e WHERE t.id = e.id RETURNING t.id`;

/** The key of the advisory lock of the clean-up, the same in every version. */
const CLEAN_UP_LOCK = 7_301_004;

describe('the move of the audit log into partitions', () => {
  let database: TestDatabase;
  let folder: string;
  let client: Client;
  const clients: Client[] = [];

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    database = await createEmptyDatabase();
    const before = await opened();
    await migrate(before, new RecordingLog(), await earlierMigrations('before partitions', folder));
    await before.query(ROWS);
    await before.destroy();
    client = await connected();
  });
  afterAll(async () => {
    for (const each of clients) await each.end();
    await database.drop();
    await removeDirectory(folder);
  });

  const opened = () =>
    openMigrationConnection({ connectionString: database.url }, new RecordingLog());
  async function connected(): Promise<Client> {
    const connection = new Client({ connectionString: database.url });
    await connection.connect();
    clients.push(connection);
    return connection;
  }
  const first = async (query: string) =>
    (await client.query({ text: query, rowMode: 'array' })).rows[0]?.[0];
  const allRows = async () => {
    const { rows } = await client.query('SELECT e::text AS row FROM audit_events e ORDER BY id');
    return rows.map(({ row }) => row as string);
  };

  /** Begins the move, and terminates its connection as soon as an SQL condition is true. */
  async function killWhen(condition: string): Promise<void> {
    const mover = await opened();
    const ended = migrateInBackground(mover, new RecordingLog()).catch((error: unknown) => error);
    // The condition may be true before the mover has its lock, by the work of an earlier mover.
    const kill = `
      WITH mover AS MATERIALIZED (
        SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 7301008 AND granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND (${condition})
      ) SELECT pid FROM mover WHERE pg_terminate_backend(pid)`;
    let pid: unknown;
    const isKilled = async () => {
      pid = await first(kill);
      return pid !== undefined;
    };
    await expect.poll(isKilled, { interval: 2, timeout: 90_000 }).toBe(true);
    expect(await ended).toBeInstanceOf(Error);
    await mover.destroy();
    // The next call must not find the last query of this session, which may still be ending.
    const ending = `SELECT count(*)::int FROM pg_stat_activity WHERE pid = ${Number(pid)}`;
    await expect.poll(() => first(ending), { interval: 2 }).toBe(0);
  }
  const waitsForLock = (table: string) =>
    `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = to_regclass('${table}'))`;

  /** Runs an action while another transaction, which has run a statement, stays open. */
  async function whileOpen(statement: string, act: () => Promise<void>): Promise<void> {
    const holder = await connected();
    await holder.query(`BEGIN ISOLATION LEVEL REPEATABLE READ; ${statement}`);
    await act();
    await holder.query('ROLLBACK');
  }

  it('has every row once, while writers go on and it is killed at each step', async () => {
    const starting = await opened();
    await migrate(starting, new RecordingLog());
    await starting.destroy();
    const expected = new Set(await allRows());
    const writers = [await connected(), await connected()].map((each) => write(each, expected));
    const cleaner = cleanUp(await connected());

    await whileOpen('LOCK TABLE audit_events IN ROW EXCLUSIVE MODE', () =>
      killWhen(waitsForLock('audit_events')),
    );
    await killWhen('SELECT key IS NOT NULL FROM audit_log_copied');
    await killWhen(
      `SELECT key IS NOT NULL AND (SELECT count(*) FROM audit_log) > 1500 FROM audit_log_copied`,
    );
    const transaction = await connected();
    await transaction.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
    await killWhen(
      `SELECT EXISTS (SELECT FROM pg_stat_activity
         WHERE datname = current_database() AND query LIKE '%backend_xmin IS NOT NULL%' AND pid <> pg_backend_pid())`,
    );
    await transaction.query('ROLLBACK');
    await whileOpen('LOCK TABLE audit_log_copied IN ACCESS SHARE MODE', () =>
      killWhen(waitsForLock('audit_log_copied')),
    );
    expect(await first(`SELECT to_regclass('audit_events_before') IS NOT NULL`)).toBe(true);
    const last = await opened();
    await migrateInBackground(last, new RecordingLog());
    await last.destroy();

    const pauses = await Promise.all(writers.map((each) => each.stop()));
    const deleted = await cleaner.stop();
    const found = await allRows();
    const kept = [...expected].filter((row) => !deleted.has(row.slice(1, 37)));
    expect(found.toSorted()).toEqual(kept.toSorted());
    expect(deleted.size).toBeGreaterThan(10);
    expect(expected.size).toBeGreaterThan(2_100);
    expect(Math.max(...pauses)).toBeLessThan(LONGEST_PAUSE);
    expect(await first(`SELECT relkind FROM pg_class WHERE oid = 'audit_events'::regclass`)).toBe(
      'p',
    );
    expect(await first(`SELECT to_regclass('audit_events_before')`)).toBeNull();
    expect(await first('SELECT count(*)::int FROM audit_events_auth_other')).toBe(0);
    expect(await first('SELECT count(*)::int FROM audit_events_oauth_other')).toBe(0);
  });
});

/**
 * Inserts rows in rounds: one row, then two in a transaction, of which a savepoint rolls one back.
 * Adds the rows that remain to `expected`. `stop` returns the longest round in milliseconds.
 */
function write(connection: Client, expected: Set<string>) {
  const state = { isStopped: false };
  let longest = 0;
  const add = async (kind: string) =>
    (
      await connection.query<{ row: string }>({
        name: 'write',
        text: WRITE,
        values: [randomUUID(), kind],
      })
    ).rows.map(({ row }) => row);
  const ended = (async () => {
    while (!state.isStopped) {
      const begun = performance.now();
      const rows = await add('oauth');
      await connection.query('BEGIN');
      rows.push(...(await add('admin')));
      await connection.query('SAVEPOINT s');
      await add('auth');
      await connection.query('ROLLBACK TO s');
      await connection.query('COMMIT');
      longest = Math.max(longest, performance.now() - begun);
      for (const row of rows) expected.add(row);
    }
  })();
  return {
    async stop() {
      state.isStopped = true;
      await ended;
      return longest;
    },
  };
}

/**
 * Deletes old rows, each time under the lock of the clean-up, as the previous version does. `stop`
 * returns the deleted ids.
 */
function cleanUp(connection: Client) {
  const state = { isStopped: false };
  const deleted = new Set<string>();
  const ended = (async () => {
    while (!state.isStopped) {
      const { rows } = await connection.query(
        `SELECT pg_try_advisory_lock(${CLEAN_UP_LOCK}) AS taken`,
      );
      if (!rows[0].taken) continue;
      for (const { id } of (await connection.query(CLEAN_UP)).rows) deleted.add(id);
      await connection.query(`SELECT pg_advisory_unlock(${CLEAN_UP_LOCK}), pg_sleep(0.02)`);
    }
  })();
  return {
    async stop() {
      state.isStopped = true;
      await ended;
      return deleted;
    },
  };
}
