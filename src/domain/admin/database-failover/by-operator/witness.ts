import type { Clock } from '#platform/clock/clock.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { commitTime, findWitness } from './witness.repository.js';

/**
 * The longest wait for a heartbeat, and the pause between two reads, in milliseconds. A heartbeat
 * is a time that each process of the service writes into its row of the database twice a second.
 */
const PATIENCE = 3_000;
const POLL = 50;

/**
 * Waits until a process of the service has read audit events that the operator's command wrote.
 * From then on, the process notices if a failover of the database loses these events, and repeats
 * what the command did.
 *
 * @returns false if no process runs, or none has read the events within 3 s
 */
export async function waitForWitness(
  tx: EntityManager,
  auditIds: readonly string[],
  clock: Clock,
): Promise<boolean> {
  const committedAt = await commitTime(tx, auditIds);
  if (committedAt === undefined) return false;
  const deadline = clock.monotonic() + PATIENCE;
  for (;;) {
    const { isSeen, isRunning } = await findWitness(tx, committedAt);
    if (isSeen || !isRunning || clock.monotonic() >= deadline) return isSeen;
    await clock.sleep(POLL);
  }
}
