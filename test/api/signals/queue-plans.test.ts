import { DataSource, type EntityManager } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  listDueClients,
  takeNotices,
} from '../../../src/domain/oauth/logout-notices/notice-queue.repository.js';
import {
  listDueReceivers,
  takeSignals,
} from '../../../src/domain/oauth/shared-signals/event-queue.repository.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';

/** The number of rows that are queued at once. */
const BURST = 1000;

/** A queue: its table, the SQL that fills it, and the functions that read it. */
interface Queue {
  readonly table: string;
  /** SQL that inserts `$1` rows that are due for one client. */
  readonly toOne: string;
  readonly list: (tx: EntityManager) => Promise<readonly unknown[]>;
  readonly take: (
    tx: EntityManager,
    counts: ReadonlyMap<string, number>,
  ) => Promise<readonly unknown[]>;
}

const NOTICES: Queue = {
  table: 'logout_notices',
  toOne: `INSERT INTO logout_notices (client_id, self_registered, user_id)
    SELECT 'told', true, gen_random_uuid() FROM generate_series(1, $1::int)`,
  list: (tx) => listDueClients(tx, true),
  take: (tx, counts) => takeNotices(tx, counts, true),
};

const EVENTS: Queue = {
  table: 'signal_events',
  toOne: `INSERT INTO signal_events (stream_id, subject_id, type)
    SELECT s.id, gen_random_uuid(), 'session-revoked' FROM signal_streams s, generate_series(1, $1::int)`,
  list: listDueReceivers,
  take: takeSignals,
};

describe('by a plan that PostgreSQL made for an almost empty queue', () => {
  let database: TestDatabase;
  let source: DataSource;
  beforeAll(async () => {
    database = await createTestDatabase();
    source = await new DataSource({
      type: 'postgres',
      url: database.url,
      poolSize: 1, // PostgreSQL keeps plans per connection
      extra: { options: '-c plan_cache_mode=force_generic_plan' },
    }).initialize();
    const run = (text: string) => source.query(text);
    await run('UPDATE database_identity SET started_at = pg_postmaster_start_time()');
    await run(
      `INSERT INTO oauth_clients (id, kind, metadata) VALUES ('told', 'first-party', '{}')`,
    );
    await run(
      `INSERT INTO signal_receivers (client_id, subject_format) VALUES ('told', 'iss_sub')`,
    );
    await run(
      `INSERT INTO signal_streams (id, client_id, org_id, method, endpoint_url, events)
       VALUES (gen_random_uuid(), 'told', gen_random_uuid(), 'push', 'https://told.example', '{session-revoked}')`,
    );
  });
  afterAll(async () => {
    await source.destroy();
    await database.drop();
  });

  /**
   * Runs the statements on a queue with no row, and with one. PostgreSQL then keeps the generic
   * plans that it made for so few rows.
   */
  async function keepPlans({ table, toOne, list, take }: Queue): Promise<void> {
    await source.query(`DELETE FROM ${table}`);
    await source.query(`VACUUM ANALYZE ${table}`);
    const one = new Map([['told', 1]]);
    expect(await list(source.manager)).toHaveLength(0);
    expect(await take(source.manager, one)).toHaveLength(0);
    await source.query(toOne, [1]);
    expect(await list(source.manager)).toHaveLength(1);
    expect(await take(source.manager, one)).toHaveLength(1);
  }

  /** Returns how many rows of a queue's table an action reads in a transaction. */
  async function rowsRead(tx: EntityManager, { table }: Queue, act: () => Promise<void>) {
    const read = async () => {
      const [row] = (await tx.query(
        `SELECT (seq_tup_read + idx_tup_fetch)::int AS n FROM pg_stat_xact_user_tables WHERE relname = $1`,
        [table],
      )) as { n: number }[];
      return row?.n ?? 0;
    };
    const before = await read();
    await act();
    return (await read()) - before;
  }

  it.each([NOTICES, EVENTS])(
    'a burst of rows of one client in $table: four of them are listed and taken, and few are read',
    async (queue) => {
      await keepPlans(queue);
      await source.transaction(async (tx) => {
        await tx.query(queue.toOne, [BURST]);
        const read = await rowsRead(tx, queue, async () => {
          expect(await queue.list(tx)).toHaveLength(1);
          expect(await queue.take(tx, new Map([['told', 4]]))).toHaveLength(4);
        });
        expect(read).toBeLessThan(BURST / 2);
      });
    },
  );

  it('a burst of notices of many clients: each is read once', async () => {
    await keepPlans(NOTICES);
    await source.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO logout_notices (client_id, self_registered, user_id)
         SELECT 'client-' || n, true, gen_random_uuid() FROM generate_series(1, $1::int) n`,
        [BURST],
      );
      const read = await rowsRead(tx, NOTICES, async () => {
        expect(await NOTICES.list(tx)).toHaveLength(BURST);
      });
      expect(read).toBeLessThan(2 * BURST);
    });
  });
});
