import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { PATIENCE_DURING_RESPONSE } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  listCheckpoints,
  newestCheckpoint,
  type Checkpoint,
} from '#domain/audit/seal/checkpoints.repository.js';
import { findTree, hashOfLeaves } from '#domain/audit/sealed-export/leaves.repository.js';
import { consistencyParts } from '#domain/audit/seal/merkle-tree.js';
import { listVerifiers } from '#domain/audit/seal/seal-keys.repository.js';
import {
  readSealed,
  type ExportFacts,
  type SealedPlace,
} from '#domain/audit/sealed-export/sealed-export.js';

/**
 * Runs a read of the audit log, after a check that the admin or program may still read. `patience`
 * is the longest wait for a database connection, in milliseconds.
 */
export type AdminRead = <Found>(
  work: (tx: EntityManager) => Promise<Found>,
  patience?: number,
) => Promise<Found>;

/**
 * A page of signed checkpoints of an organization, and the public keys that verify them, in the
 * format of c2sp.org/signed-note.
 */
export interface CheckpointPage {
  readonly checkpoints: readonly Checkpoint[];
  readonly keys: readonly string[];
}

/** A consistency proof between two sizes of a tree (RFC 9162 §2.1.4). */
export interface ConsistencyProof {
  readonly hashes: readonly Buffer[];
  /**
   * The signed text of the last checkpoint of the previous epoch, which the first leaf of this tree
   * names; null if there is none.
   */
  readonly previous: string | null;
}

/** The position of the first leaf of the first tree, from which the whole log is exported. */
export const FIRST_LEAF: SealedPlace = { epoch: '0', index: 0 };

/**
 * Reads the sealed export (the audit events with the leaves that prove them) in parts, up to the
 * last checkpoint. The first part is read before the function returns.
 */
export async function sealedParts(
  read: AdminRead,
  orgId: string,
  from: SealedPlace,
  facts: ExportFacts,
): Promise<AsyncGenerator<readonly string[]>> {
  const first = await read((tx) => readSealed(tx, orgId, from, false, facts));
  return (async function* parts() {
    for (let { lines, next } = first; ;) {
      yield lines;
      const place = next;
      if (!place) return;
      const readNext = (tx: EntityManager) => readSealed(tx, orgId, place, true, facts);
      ({ lines, next } = await read(readNext, PATIENCE_DURING_RESPONSE));
    }
  })();
}

/**
 * Lists the signed checkpoints of an organization after an epoch and a size, or only the newest
 * one.
 */
export async function readCheckpoints(
  tx: EntityManager,
  orgId: string,
  after: { readonly epoch: string; readonly size: number } | 'newest',
  limit: number,
): Promise<CheckpointPage> {
  const keys = await listVerifiers(tx);
  if (after !== 'newest') {
    return { keys, checkpoints: await listCheckpoints(tx, orgId, after, limit) };
  }
  const newest = await newestCheckpoint(tx, orgId);
  return { keys, checkpoints: newest ? [newest] : [] };
}

/**
 * Returns the proof that the Merkle tree of an epoch only grew between two sizes, so that no
 * earlier leaf changed.
 *
 * @throws DomainError not_found for sizes that the tree does not have
 */
export async function proveConsistency(
  tx: EntityManager,
  orgId: string,
  epoch: string,
  [first, second]: readonly [number, number],
): Promise<ConsistencyProof> {
  const tree = await findTree(tx, orgId, epoch);
  if (tree?.epoch !== epoch || first < 1 || first > second || second > tree.size) {
    throw new DomainError('not_found', 'The audit log of your organization has no such sizes.');
  }
  const hashes: Buffer[] = [];
  for (const part of consistencyParts(first, second)) {
    hashes.push(await hashOfLeaves(tx, orgId, epoch, part));
  }
  return { hashes, previous: tree.previous };
}
