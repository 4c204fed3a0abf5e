import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openMigrationConnection } from '#platform/database/connection.js';
import { newUuid } from '#platform/clock/random.js';
import { migrate, migrateInBackground } from '#platform/database/migrations.js';
import { createEmptyDatabase, type TestDatabase } from '../../support/database.js';
import { earlierMigrations } from '../../support/earlier-migrations.js';
import { RecordingLog } from '../../support/recording-log.js';
import { atScale } from '../../support/scale.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

const ROWS = atScale({ small: 1_000, full: 50_000 });
const WRITERS = atScale({ small: 2, full: 4 });
/** The time limit of a slow step at full size, in milliseconds. */
const PATIENCE = 180_000;

/** The longest that one INSERT may take while an action runs, in milliseconds. */
const LONGEST_PAUSE = 1_000;

const FILL = `
  INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, request_id, ip, user_agent, details, created_at,
                            actor_email, subject_email, client_name, epoch, xid)
  SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'ssh_credential', CASE WHEN n % 10 = 0 THEN 'admin' WHEN n % 3 = 0 THEN 'auth' ELSE 'oauth' END,
         md5((n % 5000)::text)::uuid, md5((n % 5000)::text)::uuid, md5((n % 7)::text)::uuid, 'request ' || n, '10.0.0.1', 'OpenSSH_9.9',
         jsonb_build_object('serial', n::text, 'principals', jsonb_build_array('user-' || n)), now() - n * interval '1 day' * 80 / ${ROWS},
         'user-' || n, 'user-' || n, NULL, 1, n::text::xid8
  FROM generate_series(1, ${ROWS}) n`;
const WRITE = `
  INSERT INTO audit_events (id, type, class, actor_email, subject_email, request_id)
  VALUES ($1, 'written', 'oauth', 'a', 's', 'r')`;
const SUM = `SELECT count(*)::int AS n, sum(hashtextextended(e::text, 0))::text AS sum FROM audit_events e WHERE type <> 'written'`;

describe('the audit log under load', () => {
  let database: TestDatabase;
  let folder: string;
  let client: Client;
  const clients: Client[] = [];
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    database = await createEmptyDatabase();
    await withMigrations(async (dataSource) => {
      const log = new RecordingLog();
      await migrate(dataSource, log, await earlierMigrations('before partitions', folder));
      await dataSource.query(FILL);
      await dataSource.query('VACUUM ANALYZE audit_events');
    });
    client = await connected();
  }, PATIENCE);
  afterAll(async () => {
    for (const each of clients) await each.end();
    await database.drop();
    await removeDirectory(folder);
  });

  async function withMigrations(
    act: (dataSource: Awaited<ReturnType<typeof openMigrationConnection>>) => Promise<unknown>,
  ): Promise<void> {
    const log = new RecordingLog();
    const dataSource = await openMigrationConnection({ connectionString: database.url }, log);
    await act(dataSource);
    await dataSource.destroy();
  }
  async function connected(): Promise<Client> {
    const connection = new Client({ connectionString: database.url });
    await connection.connect();
    clients.push(connection);
    return connection;
  }
  const all = async (query: string) => (await client.query(query)).rows;

  /**
   * Inserts events from several connections during an action. Returns their number, the longest
   * time of one INSERT in milliseconds, and the seconds that the action took.
   */
  async function underLoad(act: () => Promise<unknown>) {
    const state = { isStopped: false, written: 0, longest: 0 };
    const write = async (connection: Client) => {
      while (!state.isStopped) {
        const begun = performance.now();
        await connection.query({ name: 'write', text: WRITE, values: [newUuid()] });
        state.longest = Math.max(state.longest, performance.now() - begun);
        state.written += 1;
      }
    };
    const connections = await Promise.all(Array.from({ length: WRITERS }, connected));
    const writing = connections.map(write);
    const begun = performance.now();
    await act();
    const seconds = (performance.now() - begun) / 1000;
    state.isStopped = true;
    await Promise.all(writing);
    return { ...state, seconds };
  }
  function print(
    what: string,
    { written, longest, seconds }: Awaited<ReturnType<typeof underLoad>>,
  ) {
    if (ROWS < 10_000) return;
    process.stdout.write(
      `${what}: ${ROWS} rows, ${seconds.toFixed(1)} s, ${written} rows written meanwhile, longest pause ${longest.toFixed(0)} ms\n`,
    );
  }

  it(
    'moves into partitions, and loses a month, while no writer waits for a second',
    async () => {
      const before = await all(SUM);
      const move = await underLoad(() =>
        withMigrations(async (dataSource) => {
          await migrate(dataSource, new RecordingLog());
          await migrateInBackground(dataSource, new RecordingLog());
        }),
      );
      print('move', move);
      expect(await all(SUM)).toEqual(before);
      expect(
        await all(`SELECT count(*)::int AS n FROM audit_events WHERE type = 'written'`),
      ).toEqual([{ n: move.written }]);
      const [month] = await all(
        `SELECT class, month, relation FROM audit_months() WHERE class = 'oauth' AND ends < now() ORDER BY month DESC`,
      );
      const [{ n: rows }] = await all(`SELECT count(*)::int AS n FROM ${month.relation}`);
      expect(rows).toBeGreaterThan(ROWS / 10);
      const drop = await underLoad(async () => {
        const { rows: dropped } = await client.query(
          `SELECT set_config('lock_timeout', '200ms', false), drop_audit_month($1, $2, 0) AS done`,
          [month.class, month.month],
        );
        expect(dropped[0].done).toBe(true);
      });
      print(`drop of a month of ${rows} rows`, drop);
      expect(await all(`SELECT to_regclass('${month.relation}') AS gone`)).toEqual([
        { gone: null },
      ]);
      expect(Math.max(move.longest, drop.longest)).toBeLessThan(LONGEST_PAUSE);
    },
    PATIENCE,
  );
});
