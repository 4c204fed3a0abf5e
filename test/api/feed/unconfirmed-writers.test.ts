import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { sqlStateOf, UNCONFIRMED } from '#platform/database/statements/faults.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { FailoverWorld } from '../../support/failover-world.js';
import { untilWaiting } from '../../support/lock-waiters.js';

const log = new AuditLog();

/**
 * Records an event by the code of the service. Returns the request id by which the event is found.
 */
async function record(tx: EntityManager): Promise<string> {
  const mark = randomUUID();
  const origin = { requestId: mark, ip: undefined, userAgent: undefined };
  await log.record(tx, { type: 'logout', actorId: null, subjectId: null, orgId: null, origin });
  return mark;
}

describe('a server that is not confirmed', () => {
  let world: FailoverWorld;

  beforeAll(async () => {
    world = await FailoverWorld.open();
  });
  afterAll(() => world.close());

  const epoch = async () => {
    const [row] = await world.query<{ epoch: string }>('SELECT epoch::text FROM database_identity');
    return row?.epoch ?? '';
  };

  it('takes no event, also in a transaction that was open before', async () => {
    // A connection outside the service's pool, like one of a pooler: the service does not check its
    // server.
    const pooled = await new DataSource({ type: 'postgres', url: world.database.url }).initialize();
    const open = pooled.createQueryRunner();
    try {
      await open.startTransaction();
      const before = await record(open.manager);
      await world.restart();
      expect(await record(open.manager).catch(sqlStateOf)).toBe(UNCONFIRMED);
      await open.rollbackTransaction();
      expect(await record(pooled.manager).catch(sqlStateOf)).toBe(UNCONFIRMED);
      await world.confirmAtStart(undefined);
      const after = await record(pooled.manager);
      const events = 'SELECT request_id FROM audit_events WHERE request_id = ANY ($1)';
      expect(await world.query(events, [[before, after]])).toEqual([{ request_id: after }]);
    } finally {
      await open.release();
      await pooled.destroy();
    }
  });

  it('is confirmed once the writers of before have ended: their events end the epoch', async () => {
    const first = await epoch();
    const open = world.direct.createQueryRunner();
    const waiting = world.direct.createQueryRunner();
    try {
      await open.startTransaction();
      const early = await record(open.manager);
      await waiting.startTransaction();
      // its transaction id is lower than that of the confirmation
      await waiting.query('SELECT pg_current_xact_id()');
      // Makes the server unconfirmed, as if a process had found a loss after the confirmation.
      await world.query("UPDATE database_identity SET started_at = 'epoch'");
      await world.report(await world.addSilentReplica(), true);
      const state = { isConfirmed: false };
      const confirming = world.confirmAtStart(undefined).finally(() => {
        state.isConfirmed = true;
      });
      await untilWaiting(world.direct, 1);
      // This INSERT is of an earlier version, which lacks the check that refuses events on an
      // unconfirmed server.
      const late = randomUUID();
      const recording = waiting.query(
        "INSERT INTO audit_events (id, type, class, request_id) VALUES (gen_random_uuid(), 'logout', 'auth', $1)",
        [late],
      );
      await untilWaiting(world.direct, 2);
      expect([state.isConfirmed, await world.isConfirmed()]).toEqual([false, false]);

      await open.commitTransaction();
      await Promise.all([confirming, recording]);
      await waiting.commitTransaction();
      expect(await world.isConfirmed()).toBe(true);
      const second = await epoch();
      expect(BigInt(second)).toBeGreaterThan(BigInt(first));
      const events = await world.query(
        `SELECT request_id, epoch::text FROM audit_events WHERE request_id = ANY ($1)
         ORDER BY epoch, xid, id`,
        [[early, late]],
      );
      expect(events).toEqual([
        { request_id: early, epoch: first },
        { request_id: late, epoch: second },
      ]);
      // The early event is not beyond the recorded end of its epoch, so that a reader who has read
      // it need not begin again.
      const beyond = `audit_events e JOIN audit_epochs a ON a.epoch = e.epoch
        WHERE e.request_id = $1 AND (e.xid, e.id) > (a.last_xid, a.last_id)`;
      expect(await world.query(`SELECT FROM ${beyond}`, [early])).toEqual([]);
    } finally {
      await open.release();
      await waiting.release();
    }
  });

  it('is not confirmed while a writer of before stays open, and the confirmation is tried again', async () => {
    await world.removeSilentReplicas();
    const first = await epoch();
    // The confirmation waits for 20 seconds. PostgreSQL has no clock that a test could move.
    const [hold] = await world.query<{ text: string }>(
      "SELECT pg_get_functiondef('hold_audit_writers()'::regprocedure) AS text",
    );
    await world.query(hold?.text.replace("'20s'", "'20ms'") ?? '');
    const warned = vi.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
    const open = world.direct.createQueryRunner();
    try {
      await open.startTransaction();
      const early = await record(open.manager);
      await world.query("UPDATE database_identity SET started_at = 'epoch'");
      await world.report(await world.addSilentReplica(), true);
      const state = { isConfirmed: false };
      const confirming = world.confirmAtStart(undefined).finally(() => {
        state.isConfirmed = true;
      });
      await expect.poll(() => state.isConfirmed || warned.mock.calls.length > 1).toBe(true);
      expect([await world.isConfirmed(), await epoch()]).toEqual([false, first]);

      await open.commitTransaction();
      await confirming;
      expect(await world.isConfirmed()).toBe(true);
      expect(BigInt(await epoch())).toBeGreaterThan(BigInt(first));
      expect(
        await world.query('SELECT epoch::text FROM audit_events WHERE request_id = $1', [early]),
      ).toEqual([{ epoch: first }]);
    } finally {
      warned.mockRestore();
      await open.release();
    }
  });
});
