import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { ReplicaMemory } from './replica-memory.js';
import {
  countMissing,
  hasHeartbeat,
  lastConfirmation,
  lastReconciliation,
} from './replicas.repository.js';

/** The most ids that one statement compares. */
const BATCH = 10_000;

/** The result of comparing a server with the audit rows and heartbeats that a process remembers. */
export interface MarkComparison {
  /** A description of the loss for the operator; undefined if nothing is missing. */
  readonly loss: string | undefined;
  /**
   * True if the newest heartbeat is missing: commits of other processes at that time are missing,
   * too.
   */
  readonly lacksHeartbeat: boolean;
}

/** Compares what a process remembers as committed with the rows on a server. */
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
 * Finds something that a process remembers as committed and that a server lacks. PostgreSQL loses
 * only the newest commits, so that one missing row proves a loss.
 *
 * @returns a description of the loss for the operator; undefined if nothing is missing
 */
async function findLoss(tx: EntityManager, memory: ReplicaMemory): Promise<string | undefined> {
  const { known, settledHeartbeat } = memory;
  if (known === undefined) return undefined;
  // All remembered ids are taken before the first proof. An id that was left would prove the same
  // loss a second time.
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

/**
 * Returns true if the confirmation of other processes has already ended all access that a process
 * lost, after {@link compareMemory} found the loss. Returns false if the process worked on another
 * server after that confirmation.
 */
export async function hasEndedSince(tx: EntityManager, memory: ReplicaMemory): Promise<boolean> {
  const ended = await lastReconciliation(tx);
  if (!ended || ended.confirmedAt <= BigInt(memory.known?.confirmedAt ?? 0)) return false;
  if ((memory.highestSerial ?? 0n) > ended.revokedTo) return false;
  return (await countMissingOf(tx, memory.comparedWithin(ended.age))) === 0;
}

/** Counts the audit rows among any number of ids that are not on the server. */
export async function countMissingOf(tx: EntityManager, ids: readonly string[]): Promise<number> {
  let missing = 0;
  for (let from = 0; from < ids.length; from += BATCH) {
    missing += await countMissing(tx, ids.slice(from, from + BATCH));
  }
  return missing;
}
