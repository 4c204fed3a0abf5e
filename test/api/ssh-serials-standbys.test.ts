import { randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  highestSerial,
  moveSerials,
  type SerialMove,
} from '#domain/ssh/serials/serials.repository.js';
import { copyDatabase, createTestDatabase, type TestDatabase } from '../support/database.js';
import { rows } from '../support/rows.js';

/**
 * Stands for a PostgreSQL server: a database of its own, which is a copy of the primary at some
 * time.
 */
class Server {
  private constructor(
    readonly database: TestDatabase,
    private dataSource: DataSource,
  ) {}

  static async on(database: TestDatabase): Promise<Server> {
    return new Server(database, await open(database));
  }

  /** Returns a standby that has replayed all commits so far. */
  async standby(): Promise<Server> {
    await this.dataSource.destroy();
    const copy = await copyDatabase(this.database);
    this.dataSource = await open(this.database);
    return Server.on(copy);
  }

  /** Inserts `count` certificates in one statement. Returns their serials. */
  async issue(count: number): Promise<number[]> {
    const issued = await rows<{ serial: string }>(
      this.dataSource,
      `INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint,
         valid_after, valid_before)
       SELECT nextval('ssh_certificate_serial'), $2, $2, 'k', '{p}', 'f', 'ca', now(), now() + interval '8 hours'
       FROM generate_series(1, $1::int) RETURNING serial`,
      [count, randomUUID()],
    );
    return issued.map(({ serial }) => Number(serial));
  }

  move(how: SerialMove): Promise<{ floor: bigint }> {
    return this.dataSource.transaction((tx) => moveSerials(tx, how));
  }

  highest(): Promise<bigint> {
    return highestSerial(this.dataSource.manager);
  }

  /** Returns those of the serials that are in a revoked range. */
  async revoked(serials: readonly number[]): Promise<number[]> {
    const found = await rows<{ serial: string }>(
      this.dataSource,
      `SELECT serial FROM unnest($1::bigint[]) AS serial
       WHERE EXISTS (SELECT FROM ssh_revoked_ranges WHERE serial BETWEEN first_serial AND last_serial)`,
      [serials],
    );
    return found.map(({ serial }) => Number(serial));
  }

  async stop(): Promise<void> {
    await this.dataSource.destroy();
    await this.database.drop();
  }
}

function open({ url }: TestDatabase): Promise<DataSource> {
  return new DataSource({ type: 'postgres', url }).initialize();
}

/**
 * A primary with three standbys. All three have the first 100 certificates, and lack the 3,000 that
 * followed.
 */
describe('servers that know nothing of each other', () => {
  const servers: Server[] = [];
  const issued: number[] = [];
  let kept: number[];
  let lost: number[];

  beforeAll(async () => {
    const primary = await Server.on(await createTestDatabase());
    servers.push(primary);
    await primary.move({ kind: 'same', clock: Date.now() });
    kept = await primary.issue(100);
    for (let standby = 0; standby < 3; standby += 1) servers.push(await primary.standby());
    lost = await primary.issue(3_000);
    issued.push(...kept, ...lost);
  });
  afterAll(async () => {
    for (const server of servers) await server.stop();
  });

  it.each([
    ['a promotion with a process that remembers', 1, 'unrecorded', true, 0],
    ['a second promotion inside the same lag', 2, 'unrecorded', true, -5_000],
    ['a restore right after, with a clock 5 s behind', 3, 'first', false, -5_000],
  ] as const)(
    'after %s no serial is issued twice, and the lost ones are revoked',
    async (_, place, revokeFrom, isRemembered, clock) => {
      const server = servers[place]!;
      const highestSeen = isRemembered ? BigInt(Math.max(...issued)) : undefined;
      const before = issued.filter((serial) => !kept.includes(serial));
      const { floor } = await server.move({
        kind: 'another',
        revokeFrom,
        highestSeen,
        clock: Date.now() + clock,
        sessionHours: 8,
      });
      expect(await server.revoked(before)).toHaveLength(before.length);
      expect(await server.revoked(kept)).toHaveLength(revokeFrom === 'first' ? kept.length : 0);
      const next = await server.issue(3_000);
      expect(Math.min(...next)).toBe(Number(floor) + 1);
      expect(await server.highest()).toBe(floor + 3_000n);
      expect(await server.revoked(next)).toEqual([]);
      issued.push(...next);
      expect(new Set(issued).size).toBe(issued.length);
    },
  );
});
