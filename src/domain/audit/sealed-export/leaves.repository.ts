import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { FeedPlace } from '../feed/audit-feed.repository.js';
import { entriesOf } from '../seal/leaf-entry.js';
import {
  innerHash,
  leafHash,
  MerkleRange,
  rootOf,
  subtreesOf,
  type Subtree,
} from '../seal/merkle-tree.js';
import { LEVELS_OF_NODES } from '../seal/trees.repository.js';

/**
 * A Merkle tree of the audit log up to its last checkpoint. Later leaves are left out, because no
 * verifier can check them yet.
 */
export interface SignedTreeState {
  readonly tree: string;
  readonly epoch: string;
  readonly size: number;
  /**
   * The signed text of the last checkpoint of the previous tree, which the first leaf names; null
   * if there is none.
   */
  readonly previous: string | null;
  /** The position in the feed after which the events of the tree begin. */
  readonly from: FeedPlace;
}

/**
 * Leaves that one transaction appended. `first` is the index of the first leaf. The positions of
 * their events in the feed are after `after`, up to `last`.
 */
export interface LeafBatch {
  readonly first: number;
  readonly entries: readonly Buffer[];
  readonly after: FeedPlace;
  readonly last: FeedPlace;
}

/**
 * Returns the tree of an organization with the lowest epoch that is at least `from`, among those
 * with a checkpoint; undefined if there is none.
 */
export async function findTree(
  tx: EntityManager,
  tree: string,
  from: string,
): Promise<SignedTreeState | undefined> {
  const [row] = await sql<{
    epoch: string;
    size: string;
    previous: string | null;
    from_epoch: string;
    from_xid: string;
    from_id: string;
  }>(tx)`
    SELECT epoch, signed_size AS size, previous, from_epoch, from_xid::text AS from_xid, from_id FROM audit_trees
    WHERE tree = ${tree} AND epoch >= ${from}::bigint AND signed_size > 0 ORDER BY epoch LIMIT 1`;
  return (
    row && {
      tree,
      epoch: row.epoch,
      size: Number(row.size),
      previous: row.previous,
      from: { epoch: row.from_epoch, xid: row.from_xid, id: row.from_id },
    }
  );
}

/** Returns the batch of leaves that contains the leaf with an index; undefined if there is none. */
export async function findBatch(
  tx: EntityManager,
  { tree, epoch, from }: Pick<SignedTreeState, 'tree' | 'epoch' | 'from'>,
  index: number,
): Promise<LeafBatch | undefined> {
  const rows = await sql<{
    first: string;
    entries: Buffer;
    last_epoch: string;
    last_xid: string;
    last_id: string;
    is_before: boolean;
  }>(tx)`
    WITH found AS MATERIALIZED (
      SELECT l.batch FROM audit_leaves l
      WHERE l.tree = ${tree} AND l.epoch = ${epoch} AND l.first <= ${index}::bigint ORDER BY l.first DESC LIMIT 1)
    SELECT p.first, p.entries, p.last_epoch, p.last_xid::text AS last_xid, p.last_id, p.is_before FROM found f
    CROSS JOIN LATERAL (
      (SELECT l.*, true AS is_before FROM audit_leaves l
       WHERE l.tree = ${tree} AND l.epoch = ${epoch} AND l.first < f.batch ORDER BY l.first DESC LIMIT 1)
      UNION ALL
      (SELECT l.*, false FROM audit_leaves l
       WHERE l.tree = ${tree} AND l.epoch = ${epoch} AND l.first >= f.batch AND l.batch = f.batch
         AND l.first <= f.batch + ${LARGEST_BATCH}::bigint)) p
    ORDER BY p.first`;
  const places = rows.map(({ is_before: isBefore, ...row }) => ({
    isBefore,
    place: { epoch: row.last_epoch, xid: row.last_xid, id: row.last_id },
    row,
  }));
  const own = places.filter(({ isBefore }) => !isBefore);
  const [begin, end] = [own[0], own.at(-1)];
  if (!begin || !end) return undefined;
  return {
    first: Number(begin.row.first),
    entries: own.flatMap(({ row }) => entriesOf(row.entries)),
    after: places.find(({ isBefore }) => isBefore)?.place ?? from,
    last: end.place,
  };
}

/**
 * A number that is larger than any batch of leaves. It limits the range of the index that the
 * statement reads.
 */
const LARGEST_BATCH = 10_000;

/** Returns the first `size` leaves of a tree, as the hashes of their largest complete subtrees. */
export async function rangeAt(
  tx: EntityManager,
  tree: string,
  epoch: string,
  size: number,
): Promise<MerkleRange> {
  const hashes: Buffer[] = [];
  for (const part of subtreesOf(0, size)) hashes.push(await subtreeHash(tx, tree, epoch, part));
  return new MerkleRange(size, Buffer.concat(hashes));
}

/**
 * Returns the hash of a run of leaves as a tree of their own (RFC 9162 §2.1.1). `from` is the index
 * of the first leaf, at which a complete subtree of at least this length begins. `to` is the index
 * after the last leaf.
 */
export async function hashOfLeaves(
  tx: EntityManager,
  tree: string,
  epoch: string,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<Buffer> {
  const hashes: Buffer[] = [];
  for (const part of subtreesOf(from, to)) hashes.push(await subtreeHash(tx, tree, epoch, part));
  return rootOf(hashes);
}

/**
 * Returns the hash of a complete subtree. It is computed from the largest subtrees whose hashes are
 * stored, or from the leaves if the subtree is too small for such ones.
 */
async function subtreeHash(
  tx: EntityManager,
  tree: string,
  epoch: string,
  { level, n }: Subtree,
): Promise<Buffer> {
  const stored = level - (level % LEVELS_OF_NODES);
  const width = 2 ** (level - stored);
  const hashes =
    stored === 0
      ? await readLeaves(tx, tree, epoch, n * width, width)
      : await readNodes(tx, tree, epoch, stored, n * width, width);
  if (hashes.length !== width) throw new Error('leaves of the seal are missing');
  return joined(hashes);
}

/**
 * Returns the hash of a subtree from the hashes of its parts. The parts are complete subtrees of
 * the same size, and their number is a power of two.
 */
function joined(hashes: readonly Buffer[]): Buffer {
  const [left, right] = hashes;
  if (!left || !right) return left ?? rootOf([]);
  const half = hashes.length / 2;
  return innerHash(joined(hashes.slice(0, half)), joined(hashes.slice(half)));
}

async function readLeaves(
  tx: EntityManager,
  tree: string,
  epoch: string,
  from: number,
  count: number,
): Promise<Buffer[]> {
  const tile = from - (from % 2 ** LEVELS_OF_NODES);
  const rows = await sql<{ first: string; entries: Buffer }>(tx)`
    SELECT first, entries FROM audit_leaves
    WHERE tree = ${tree} AND epoch = ${epoch} AND first >= ${tile}::bigint AND first < ${from + count}::bigint ORDER BY first`;
  const leaves = rows.flatMap(({ first, entries }) =>
    entriesOf(entries).map((entry, n) => ({ index: Number(first) + n, entry })),
  );
  return leaves
    .filter(({ index }) => index >= from && index < from + count)
    .map(({ entry }) => leafHash(entry));
}

async function readNodes(
  tx: EntityManager,
  tree: string,
  epoch: string,
  level: number,
  from: number,
  count: number,
): Promise<Buffer[]> {
  const rows = await sql<{ hash: Buffer }>(tx)`
    SELECT hash FROM audit_nodes WHERE tree = ${tree} AND epoch = ${epoch} AND level = ${level}
      AND n >= ${from}::bigint AND n < ${from + count}::bigint ORDER BY n`;
  return rows.map(({ hash }) => hash);
}
