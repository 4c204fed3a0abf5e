import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { ReplicaMemory } from './replica-memory.js';
import { countMissing, hasHeartbeat, lastConfirmation } from './replicas.repository.js';

/** The ids of one statement. */
const BATCH = 10_000;

/** The result of a comparison of a server with what a process knows to be on record. */
export interface MarkComparison {
  /** What is missing, for the operator; undefined if all is there. */
  readonly loss: string | undefined;
  /**
   * True if the newest heartbeat is missing: commits of other processes at that time are missing,
   * too.
   */
  readonly lacksHeartbeat: boolean;
}

/** Compares the memory of a process with a server. */
export async function compareMemory(
  tx: EntityManager,
  memory: ReplicaMemory,
): Promise<MarkComparison> {
  const { newestHeartbeat: newest } = memory;
  return {
    loss: await findLoss(tx, memory),
    lacksHeartbeat: newest !== undefined && !(await hasHeartbeat(tx, memory.id, newest)),
  };
}

/**
 * Finds something that a process knows to be on record and that a server lacks. PostgreSQL loses
 * only the newest commits, so that one missing row proves a loss.
 *
 * @returns what is missing, for the operator; undefined if all is there
 */
async function findLoss(tx: EntityManager, memory: ReplicaMemory): Promise<string | undefined> {
  const { known, settledHeartbeat } = memory;
  if (known === undefined) return undefined;
  // All marks are taken before the first proof, because one that is left would prove the same loss
  // once more after it.
  const ids = memory.takeForComparison();
  const confirmation = await lastConfirmation(tx);
  if (BigInt(confirmation?.confirmedAt ?? 0) < BigInt(known.confirmedAt)) {
    return 'the confirmation of an earlier start';
  }
  if (settledHeartbeat !== undefined) {
    if (!(await hasHeartbeat(tx, memory.id, settledHeartbeat)))
      return 'a heartbeat of a minute ago';
  }
  const missing = await countMissingOf(tx, ids);
  return missing === 0 ? undefined : `${missing} audit rows`;
}

/** Counts the audit rows among any number of ids that are not on the server. */
export async function countMissingOf(tx: EntityManager, ids: readonly string[]): Promise<number> {
  let missing = 0;
  for (let from = 0; from < ids.length; from += BATCH) {
    missing += await countMissing(tx, ids.slice(from, from + BATCH));
  }
  return missing;
}
