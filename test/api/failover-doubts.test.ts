import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Confirmation } from '#domain/admin/database-failover/confirmation.js';
import { FAILOVER_LIMITS } from '#domain/admin/database-failover/failover-limits.js';
import { ReplicaMemory } from '#domain/admin/database-failover/replica-memory.js';
import { Clock, systemClock } from '#platform/clock/clock.js';
import {
  openConfirmationConnection,
  openMigrationConnection,
} from '#platform/database/connection.js';
import { readIdentity } from '#platform/database/identity/database-identity.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { isDatabaseAway } from '#platform/database/statements/faults.js';
import type { TestApp } from '../support/app.js';
import { FailoverWorld } from '../support/failover-world.js';
import { RecordingLog } from '../support/recording-log.js';

describe('a loss that no process proves by a missing audit row', () => {
  let world: FailoverWorld;
  let app: TestApp;

  beforeAll(async () => {
    world = await FailoverWorld.open();
    app = await world.start();
    await world.start();
  });
  afterAll(() => world.close());
  afterEach(() => world.removeSilentReplicas());
  beforeEach(async () => {
    await vi.waitUntil(
      async () => (await app.client().get('/health/ready')).status === 200,
      90_000,
    );
    await world.query("DELETE FROM audit_events WHERE type = 'database_confirmed'");
    await app.enrolled(`${randomUUID()}@example.com`);
  });

  it('ends all access if the last moment is missing and the process that served then has died', async () => {
    await world.addSilentReplica();
    await loseHeartbeats();
    await expect
      .poll(() => world.query('SELECT FROM replica_reports WHERE lacks_heartbeat'))
      .not.toEqual([]);
    await expect.poll(() => world.query('SELECT FROM replica_reports')).toHaveLength(2);
    await world.query("UPDATE replica_reports SET reported_at = reported_at - interval '1 hour'");
    await expect
      .poll(() => world.confirmations())
      .toMatchObject([{ loss: 'unknown', ended_everything: true }]);
    expect(await world.sessions()).toBe(0);
  });

  it('ends nothing if the last moment is missing and every process compared its commits', async () => {
    await loseHeartbeats();
    await expect
      .poll(() => world.confirmations())
      .toMatchObject([{ loss: 'none', ended_everything: false }]);
    expect(await world.sessions()).toBeGreaterThan(0);
  });

  it('is found after a crash of one process of PostgreSQL, which keeps the start time', async () => {
    await world.direct.transaction(async (tx) => {
      await tx.query(
        'DELETE FROM audit_events WHERE id = (SELECT id FROM audit_events ORDER BY id DESC LIMIT 1)',
      );
      // the recovery after a crash also resets these statistics
      await tx.query("SELECT pg_stat_reset_shared('bgwriter')");
    });
    await expect
      .poll(() => world.confirmations())
      .toMatchObject([{ loss: 'proved', ended_everything: true }]);
    expect(await world.sessions()).toBe(0);
  });

  /** Makes the server look like a promoted one that lacks only the newest heartbeats. */
  async function loseHeartbeats(): Promise<void> {
    await world.direct.transaction(async (tx) => {
      // Locks the table rather than the row: a heartbeat that waited for the row would undo this
      // change.
      await tx.query('LOCK TABLE replicas IN ACCESS EXCLUSIVE MODE');
      await tx.query("UPDATE replicas SET seen_at = seen_at - interval '15 milliseconds'");
      await tx.query(
        "UPDATE database_identity SET started_at = started_at - interval '1 hour', timeline = 'FFFFFFFF'",
      );
    });
  }
});

describe('a database without its tables, as before a restore has ended', () => {
  it('is answered with 503, with one line of the log in ten seconds, and is used once it has them', async () => {
    await using parts = new AsyncDisposableStack();
    const world = await FailoverWorld.open();
    parts.defer(() => world.close());
    const app = await world.start();
    const list = () => app.client().get('/v1/credentials/ssh/krl');
    await world.query('ALTER TABLE database_identity RENAME TO not_restored');
    await world.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    const lines = () => app.log.filter((line) => line.includes('is not confirmed yet'));
    await vi.waitUntil(() => lines().length > 0, 90_000);
    for (let request = 0; request < 10; request += 1) {
      const answer = await list();
      expect([answer.status, answer.json.code]).toEqual([503, 'unavailable']);
    }
    expect(lines()).toHaveLength(1);
    await world.query('ALTER TABLE not_restored RENAME TO database_identity');
    await vi.waitFor(async () => expect((await list()).status).toBe(200), 90_000);
  });
});

describe('a confirmation during which the server changes', () => {
  let world: FailoverWorld;

  beforeAll(async () => {
    world = await FailoverWorld.open();
    const app = await world.start();
    await app.close();
    // With this schema first in its search path, a connection sees a later start time, as if
    // another server answered.
    await world.query('CREATE SCHEMA elsewhere');
    await world.query(
      `CREATE FUNCTION elsewhere.pg_postmaster_start_time() RETURNS timestamptz LANGUAGE sql STABLE
       AS 'SELECT pg_catalog.pg_postmaster_start_time() + interval ''1 second'''`,
    );
  });
  afterAll(() => world.close());

  it('confirms no server on which nothing has ended, because another one answered meanwhile', async () => {
    await world.promote();
    const options = encodeURIComponent('-c search_path=elsewhere,public,pg_catalog');
    const places = [here(), `${here()}${here().includes('?') ? '&' : '?'}options=${options}`];
    let ended = 0;
    const endEverything = () => Promise.resolve({ ended: (ended += 1) });
    const run = () => confirmation({ places, endEverything }).run();
    await expect(run()).rejects.toThrow('another PostgreSQL answers now');
    expect([ended, await world.isConfirmed()]).toEqual([0, false]);
    await run();
    expect([ended, await world.isConfirmed()]).toEqual([1, true]);
  });

  it('is not held up by a process whose comparison came before another one took the confirmation back', async () => {
    const memory = new ReplicaMemory(FAILOVER_LIMITS, 0, systemClock);
    await world.query('INSERT INTO replicas (id, seen_at) VALUES ($1, clock_timestamp())', [
      memory.id,
    ]);
    const clock = new PausingClock();
    let running: Promise<void> | undefined;
    await world.direct.transaction(async (tx) => {
      await tx.query('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.confirmation]);
      running = confirmation({ clock, memory }).run();
      await clock.paused;
      await tx.query("UPDATE database_identity SET started_at = 'epoch'");
    });
    clock.goOn();
    await running;
    expect(await world.isConfirmed()).toBe(true);
    await world.query('DELETE FROM replicas');
  });

  it('reports again if another one confirmed the server, which deletes all reports, and took that back', async () => {
    await world.promote();
    const memory = new ReplicaMemory(FAILOVER_LIMITS, 0, systemClock);
    await world.query('INSERT INTO replicas (id, seen_at) VALUES ($1, clock_timestamp())', [
      memory.id,
    ]);
    const clock = new PausingClock();
    let running: Promise<void> | undefined;
    await world.direct.transaction(async (tx) => {
      await tx.query('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.confirmation]);
      running = confirmation({ clock, memory }).run();
      await clock.paused;
      const { length } = await tx.query('DELETE FROM replica_reports RETURNING replica_id');
      expect(length).toBeGreaterThan(0);
    });
    clock.goOn();
    await running;
    expect(await world.isConfirmed()).toBe(true);
    await world.query('DELETE FROM replicas');
  });

  it.each([
    ['ends nothing again', 'after the process committed', 'clock_timestamp()', undefined, 0],
    ['ends all', 'before', "clock_timestamp() - interval '1 hour'", undefined, 1],
    ['ends all', 'without the highest serial', 'clock_timestamp()', 2n ** 52n, 1],
  ])(
    '%s if the confirmation of other processes ended all access %s',
    async (_, __, at, serial, times) => {
      const memory = new ReplicaMemory(FAILOVER_LIMITS, Infinity, systemClock);
      memory.adopt({ startedAt: '1', confirmedAt: '1' }, false);
      memory.noteRecorded([randomUUID()]);
      if (serial !== undefined) memory.noteSerial(serial);
      await world.query(
        `UPDATE database_identity SET confirmed_at = t.at, reconciled_at = t.at FROM (SELECT ${at} AS at) t`,
      );
      let ended = 0;
      const endEverything = () => Promise.resolve({ ended: (ended += 1) });
      await confirmation({ memory, endEverything }).run();
      expect([ended, await world.isConfirmed()]).toEqual([times, true]);
    },
  );

  it('waits for a server that vanished for less time than the others wait for a report', async () => {
    const waits: (number | undefined)[] = [];
    await confirmation({ waits, patience: FAILOVER_LIMITS.patience }).run();
    expect(waits[0]).toBeLessThan(FAILOVER_LIMITS.patience);
    const address = { connectionString: here() };
    const opened = await openConfirmationConnection(address, new RecordingLog(), 300);
    await world.direct.transaction(async (tx) => {
      await tx.query('SELECT pg_advisory_xact_lock(1)');
      const waiting = opened.query('SELECT pg_advisory_lock(1)');
      const fault: unknown = await waiting.catch((error: unknown) => error);
      expect(isDatabaseAway(fault)).toBe(true);
    });
    await opened.destroy();
  });

  it('leaves out a value that the server refuses by any SQLSTATE, unless it is away or a standby', async () => {
    await world.query('CREATE SCHEMA managed');
    await world.query(
      `CREATE FUNCTION managed.pg_control_system() RETURNS TABLE (system_identifier bigint) LANGUAGE plpgsql AS $$
       BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = current_setting('svc.state'); END $$`,
    );
    const identify = async (state: string) => {
      const options = `-c search_path=managed,public,pg_catalog -c svc.state=${state}`;
      const separator = here().includes('?') ? '&' : '?';
      const connectionString = `${here()}${separator}options=${encodeURIComponent(options)}`;
      const opened = await openMigrationConnection({ connectionString }, new RecordingLog());
      try {
        return await readIdentity(opened.manager);
      } finally {
        await opened.destroy();
      }
    };
    for (const state of ['42501', '22023', 'P0001', 'XX000']) {
      expect(await identify(state)).toMatchObject({ systemIdentifier: null, timeline: '00000001' });
    }
    for (const state of ['57P01', '25006', '55000']) {
      await expect(identify(state)).rejects.toThrow('refused');
    }
  });

  const here = () => world.database.url;

  interface Wanted {
    readonly places?: string[];
    readonly endEverything?: () => Promise<object>;
    readonly clock?: Clock;
    readonly memory?: ReplicaMemory;
    readonly patience?: number;
    /**
     * Receives, for each connection that is opened, the time limit of its answers in milliseconds.
     */
    readonly waits?: (number | undefined)[];
  }

  function confirmation({
    places = [],
    endEverything,
    clock = systemClock,
    memory,
    patience = 3_600_000,
    waits = [],
  }: Wanted) {
    const open = (answerWithin?: number) => {
      waits.push(answerWithin);
      const connectionString = places.shift() ?? here();
      return openMigrationConnection({ connectionString }, new RecordingLog());
    };
    return new Confirmation(
      {
        database: { isEmbedded: false, open },
        setting: undefined,
        limits: { ...FAILOVER_LIMITS, poll: 10, retry: 10, patience },
        clock,
        security: new RecordingLog(),
        endEverything: endEverything ?? (() => Promise.resolve({})),
        listSecrets: () => Promise.resolve(0),
        redo: () => Promise.resolve(),
      },
      memory ?? new ReplicaMemory(FAILOVER_LIMITS, 0, systemClock),
    );
  }
});

/** A clock whose `sleep` waits until the test calls `goOn`, and then for its time. */
class PausingClock extends Clock {
  readonly #paused = Promise.withResolvers<void>();
  readonly #end = Promise.withResolvers<void>();
  readonly paused = this.#paused.promise;

  goOn(): void {
    this.#end.resolve();
  }

  override milliseconds(): number {
    return systemClock.milliseconds();
  }

  override monotonic(): number {
    return systemClock.monotonic();
  }

  override async sleep(milliseconds: number): Promise<void> {
    this.#paused.resolve();
    await this.#end.promise;
    await systemClock.sleep(milliseconds);
  }
}
