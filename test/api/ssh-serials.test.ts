import { randomUUID } from 'node:crypto';
import { DataSource, type EntityManager } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  highestSerial,
  moveSerials,
  type MovedSerials,
  type SerialMove,
} from '#domain/ssh/serials/serials.repository.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { rows } from '../support/rows.js';

const MINUTE = 60_000_000n;
const now = () => BigInt(Date.now()) * 1000n;

describe('the serials of certificates after a start of PostgreSQL', () => {
  let database: TestDatabase;
  let dataSource: DataSource;

  beforeEach(async () => {
    database = await createTestDatabase();
    dataSource = new DataSource({ type: 'postgres', url: database.url });
    await dataSource.initialize();
  });
  afterEach(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  type Another = Omit<Extract<SerialMove, { kind: 'another' }>, 'kind'>;

  const move = (how: SerialMove) => dataSource.transaction((tx) => moveSerials(tx, how));
  const same = (clock = Date.now()) => move({ kind: 'same', clock });
  const changed = (how: Partial<Another> = {}): SerialMove => ({
    kind: 'another',
    clock: Date.now(),
    revokeFrom: 'unrecorded',
    highestSeen: 1n,
    sessionHours: 8,
    ...how,
  });
  const another = (how: Partial<Another> = {}) => move(changed(how));
  const setTo = (serial: bigint) =>
    dataSource.query("SELECT setval('ssh_certificate_serial', $1)", [String(serial)]);
  const next = async (on: Pick<EntityManager, 'query'> = dataSource) => {
    const [row]: { serial: string }[] = await on.query(
      "SELECT nextval('ssh_certificate_serial') AS serial",
    );
    return BigInt(row?.serial ?? 0);
  };
  /** Inserts a certificate that was issued some seconds ago. */
  const record = (serial: bigint, secondsAgo = 0, on: Pick<EntityManager, 'query'> = dataSource) =>
    on.query(
      `INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint,
         valid_after, valid_before, issued_at)
       VALUES ($1, $2, $2, 'k', '{p}', 'f', 'ca', now(), now() + interval '8 hours', now() - make_interval(secs => $3))`,
      [String(serial), randomUUID(), secondsAgo],
    );
  const ranges = () =>
    rows<{ first: string; last: string; hours: number }>(
      dataSource,
      `SELECT first_serial AS first, last_serial AS last,
         round(extract(epoch FROM carried_until - recorded_at) / 3600)::int AS hours
       FROM ssh_revoked_ranges ORDER BY first_serial`,
    );

  describe('of the same database', () => {
    it('move from the milliseconds of earlier versions to microseconds, without a range', async () => {
      await setTo(1_763_683_200_042n);
      const before = now();
      await same();
      const serial = await next();
      expect(serial).toBeGreaterThan(before);
      expect(serial).toBeLessThan(now() + 1_000_000n);
      expect(await ranges()).toEqual([]);
    });

    it('follow the clock of the process if that of the database is 5 s behind', async () => {
      const clock = Date.now() + 5_000;
      await same(clock);
      expect(await next()).toBe(BigInt(clock) * 1000n + 1n);
    });

    it('never go below what a process saw, because a crash may lose the newest serials', async () => {
      const seen = now() + 10n * MINUTE;
      const { floor } = await move({ kind: 'same', clock: Date.now(), highestSeen: seen });
      expect([floor, await next()]).toEqual([seen, seen + 1n]);
    });

    it('never move back with a clock, and stay where they are', async () => {
      const ahead = now() + 10n * MINUTE;
      await setTo(ahead);
      expect(await same(0)).toEqual({ floor: ahead, ranges: [] });
      expect(await same()).toEqual({ floor: ahead, ranges: [] });
      expect(await next()).toBe(ahead + 1n);
    });
  });

  describe('of another database', () => {
    it('go on a minute ahead of the clock, and every serial without a record is revoked', async () => {
      await same();
      const issued = [await next(), await next(), await next()] as const;
      await record(issued[0]);
      await record(issued[2]);
      const before = now();
      const { floor } = await another();
      expect(floor).toBeGreaterThanOrEqual(before + MINUTE);
      expect(floor).toBeLessThan(now() + MINUTE + 1_000_000n);
      expect(await next()).toBe(floor + 1n);
      expect(await ranges()).toEqual([
        { first: '1', last: String(issued[0] - 1n), hours: 9 },
        { first: String(issued[1]), last: String(issued[1]), hours: 9 },
        { first: String(issued[2] + 1n), last: String(floor), hours: 9 },
      ]);
    });

    it.each([
      ['the sequence', 30n * MINUTE, 1n],
      ['a process of ours', -30n * MINUTE, 40n * MINUTE],
    ])('go on a minute ahead of what %s has seen ahead of every clock', async (_, read, seen) => {
      const start = now();
      await setTo(start + read);
      const highestSeen = start + seen;
      const { floor } = await another({ highestSeen });
      const highest = [start + read, highestSeen].reduce((a, b) => (a > b ? a : b));
      expect(floor - highest).toBeGreaterThanOrEqual(MINUTE);
      expect(floor - highest).toBeLessThan(MINUTE + 30_000_000n);
    });

    it('revoke every serial so far if a loss is proven', async () => {
      await same();
      await record(await next());
      const { floor } = await another({ revokeFrom: 'first', sessionHours: 12 });
      expect(await ranges()).toEqual([{ first: '1', last: String(floor), hours: 13 }]);
      const later = await another({ revokeFrom: 'first' });
      expect(await ranges()).toEqual([{ first: '1', last: String(later.floor), hours: 13 }]);
    });

    it('revoke a lost certificate whose serial is below the sequence of the standby', async () => {
      await same();
      const lost = await next();
      await record(lost);
      // The standby lacks the row. Its sequence is ahead, because PostgreSQL logs 32 values of a
      // sequence at once.
      await dataSource.query('DELETE FROM ssh_certificates');
      await setTo(lost + 31n);
      await another();
      expect(await isRevoked(lost)).toBe(true);
    });

    it('revoke a lost certificate that was committed after one with a higher serial', async () => {
      await same();
      await record(await next(), 600);
      const [lost, kept] = [await next(), await next()] as const;
      await record(kept);
      await another();
      expect(await isRevoked(lost)).toBe(true);
      expect(await isRevoked(kept)).toBe(false);
    });

    it('look for lost certificates only among the newest', async () => {
      await same();
      const [older, gap, settled] = [await next(), await next(), await next()] as const;
      await record(older, 300);
      await record(settled, 200);
      const newest = await next();
      await record(newest);
      const { ranges: revoked } = await another();
      expect(revoked.map(({ first }) => first)).toEqual([newest + 1n]);
      expect(await isRevoked(gap)).toBe(false);
    });

    it('find the lost serials again after a rollback between the ranges and the commit, which setval survives', async () => {
      await same();
      const [kept, lost] = [await next(), await next()] as const;
      await record(kept, 600);
      const undone = await dataSource
        .transaction(async (tx) => {
          const { floor } = await moveSerials(tx, changed());
          throw Object.assign(new Error('the process dies'), { floor });
        })
        .catch((error: { floor: bigint }) => error.floor);
      expect(await ranges()).toEqual([]);
      expect(await highestSerial(dataSource.manager)).toBe(undone);

      const { floor } = await another();
      expect(floor).toBeGreaterThan(undone);
      expect(await isRevoked(lost)).toBe(true);
      expect(await isRevoked(undone)).toBe(true);
      expect(await isRevoked(kept)).toBe(false);
    });

    it('get different floors on two standbys that know nothing of each other', async () => {
      await setTo(now() + 3n * MINUTE); // ahead of the clock, as after two changes of the server
      const floors: bigint[] = [];
      for (const clock of [Date.now(), Date.now() + 50]) {
        const { floor } = await undo((tx) => moveSerials(tx, changed({ clock: clock + 1_000 })));
        floors.push(floor);
        // sets the sequence back to its state on the other standby
        await dataSource.query('ALTER SEQUENCE ssh_certificate_serial RESTART');
        await setTo(now() + 3n * MINUTE);
      }
      const [first = 0n, second = 0n] = floors;
      expect(second - first).toBeGreaterThan(3_000n);
    });
  });

  it('wait for an open issuance, whose certificate is then not revoked', async () => {
    await same();
    await record(await next(), 600);
    const issuing = dataSource.createQueryRunner();
    await issuing.startTransaction();
    const serial = await next(issuing);
    await record(serial, 0, issuing);
    const moving = another();
    await untilWaiting(dataSource, 1);
    await issuing.commitTransaction();
    await issuing.release();
    const { floor, ranges: revoked } = await moving;
    expect(revoked).toEqual([{ first: serial + 1n, last: floor }]);
  });

  it('are not drawn while a start moves them', async () => {
    const { drawn, floor } = await dataSource.transaction(async (tx) => {
      const moved = await moveSerials(tx, changed());
      const waiting = next();
      await untilWaiting(dataSource, 1);
      return { drawn: waiting, floor: moved.floor };
    });
    expect(await drawn).toBe(floor + 1n);
  });

  it('are issued once while twenty processes confirm at once', async () => {
    await same();
    const serials: bigint[] = [];
    const issue = async () => {
      for (let round = 0; round < 25; round += 1) serials.push(await next());
    };
    const moves = Array.from({ length: 20 }, (_, index) =>
      index % 2 === 0 ? same() : another({ revokeFrom: index % 4 === 1 ? 'first' : 'unrecorded' }),
    );
    await Promise.all([issue(), ...moves, issue(), issue()]);
    expect(new Set(serials).size).toBe(75);
    const moved = (await Promise.all(moves)).map(({ floor }) => floor);
    expect(new Set(moved.filter((_, index) => index % 2 === 1)).size).toBe(10);
  });

  /** Runs a move in a transaction, rolls it back, and returns its result. */
  async function undo(work: (tx: EntityManager) => Promise<MovedSerials>): Promise<MovedSerials> {
    const runner = dataSource.createQueryRunner();
    await runner.startTransaction();
    try {
      return await work(runner.manager);
    } finally {
      await runner.rollbackTransaction();
      await runner.release();
    }
  }

  async function isRevoked(serial: bigint): Promise<boolean> {
    const found = await rows(
      dataSource,
      `SELECT FROM ssh_revoked_ranges WHERE ${serial} BETWEEN first_serial AND last_serial`,
    );
    return found.length > 0;
  }
});
