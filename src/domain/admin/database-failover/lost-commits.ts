import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { ReplicaMemory } from './replica-memory.js';
import {
  countMissing,
  hasHeartbeat,
  lastConfirmation,
  lastReconciliation,
} from './replicas.repository.js';

/** The most ids of audit events that one statement looks for. */
const BATCH = 10_000;

/**
 * The result of comparing a database server with the audit events and heartbeats that a process
 * remembers.
 */
export interface MarkComparison {
  /** A description of the loss for the operator; undefined if nothing is missing. */
  readonly loss: string | undefined;
  /**
   * True if the newest heartbeat of the process is missing on the server. Commits of other
   * processes after the heartbeat are then missing, too, because PostgreSQL loses all commits after
   * a point.
   */
  readonly lacksHeartbeat: boolean;
}

/**
 * Compares the commits that a process remembers with the rows on a database server, to find out if
 * the server lost some.
 */
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
 * Finds a commit that a process remembers and that a database server lacks. The service itself
 * deletes none of the compared rows, so one missing row proves that the server lost commits.
 *
 * @returns a description of the loss for the operator; undefined if nothing is missing
 */
async function findLoss(tx: EntityManager, memory: ReplicaMemory): Promise<string | undefined> {
  const { known, settledHeartbeat } = memory;
  if (known === undefined) return undefined;
  // All remembered ids are taken now, before one of them proves a loss. An id that is left in the
  // memory would prove the same loss a second time.
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
 * Returns true if other processes have already ended all access because of the loss that
 * {@link compareMemory} found for this process. Returns false if this process committed something
 * on another server after all access had ended.
 */
export async function hasEndedSince(tx: EntityManager, memory: ReplicaMemory): Promise<boolean> {
  const ended = await lastReconciliation(tx);
  if (!ended || ended.confirmedAt <= BigInt(memory.known?.confirmedAt ?? 0)) return false;
  if ((memory.highestSerial ?? 0n) > ended.revokedTo) return false;
  return (await countMissingOf(tx, memory.comparedWithin(ended.age))) === 0;
}

/** Counts the ids of audit events that a database server lacks, among any number of ids. */
export async function countMissingOf(tx: EntityManager, ids: readonly string[]): Promise<number> {
  let missing = 0;
  for (let from = 0; from < ids.length; from += BATCH) {
    missing += await countMissing(tx, ids.slice(from, from + BATCH));
  }
  return missing;
}
