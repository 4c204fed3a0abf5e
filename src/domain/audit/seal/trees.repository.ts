import { byteaText, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { FIRST_PLACE, type FeedPlace } from '../feed/audit-feed.repository.js';
import { headOf } from './checkpoint.js';
import { checkpointEntry, entriesOf, ENTRY_BYTES } from './leaf-entry.js';
import { leafHash, MerkleRange, type HashedSubtree } from './merkle-tree.js';

/**
 * The number of leaves in a tile. Each tile begins at an index that is a multiple of this number,
 * and a row of `audit_leaves` never has leaves of two tiles.
 */
const TILE = 256;

/**
 * The hash of a subtree is stored only if its level is a multiple of this number. A subtree of
 * level n has 2 to the power of n leaves. The hashes of other levels are computed.
 */
export const LEVELS_OF_NODES = 8;

/**
 * A Merkle tree to which leaves are appended. Its row is locked until the end of the transaction.
 * `last` is the position of the last event in it.
 */
export interface OpenTree {
  readonly tree: string;
  readonly epoch: string;
  readonly range: MerkleRange;
  readonly last: FeedPlace;
}

/** The error for a row of `audit_trees` with values that the service cannot have written. */
export class DamagedTree extends Error {
  override readonly name = 'DamagedTree';
}

/**
 * Returns the present epoch of the feed, and keeps it from ending before the end of the
 * transaction. Returns undefined if the service has not yet confirmed the present start of the
 * database server.
 */
export async function holdEpoch(tx: EntityManager): Promise<string | undefined> {
  const [row] = await sql<{ epoch: string }>(tx)`
    SELECT d.epoch::text AS epoch FROM database_identity d
    WHERE d.started_at = pg_postmaster_start_time() FOR SHARE`;
  return row?.epoch;
}

/**
 * Locks the tree of an epoch, and creates it if it does not exist yet. A new tree begins after the
 * last event that the last checkpoint of the previous tree covers. The first leaf of the new tree
 * names that checkpoint.
 *
 * @param published the last checkpoint that was published, if the database has lost it
 * @throws DamagedTree if the stored size of the tree is not possible
 */
export async function openTree(
  tx: EntityManager,
  tree: string,
  epoch: string,
  published?: string,
): Promise<OpenTree> {
  const known = await lockTree(tx, tree, epoch);
  if (known) return known;
  await sql(tx)`
    INSERT INTO audit_trees (tree, epoch, previous, from_epoch, from_xid, from_id, size, range,
      last_epoch, last_xid, last_id, signed_epoch, signed_xid, signed_id)
    SELECT ${tree}::uuid, ${epoch}::bigint, coalesce(${published ?? null}::text, c.note), p.epoch, p.xid, p.id, 0, '',
      p.epoch, p.xid, p.id, p.epoch, p.xid, p.id
    FROM (VALUES (1)) v
    LEFT JOIN LATERAL (SELECT * FROM audit_trees t WHERE t.tree = ${tree}::uuid ORDER BY t.epoch DESC LIMIT 1) t ON true
    LEFT JOIN LATERAL (
      SELECT c.note FROM audit_checkpoints c WHERE c.tree = ${tree}::uuid ORDER BY c.epoch DESC, c.size DESC LIMIT 1) c ON true
    CROSS JOIN LATERAL (SELECT coalesce(t.signed_epoch, ${FIRST_PLACE.epoch}::bigint) AS epoch,
      coalesce(t.signed_xid, ${FIRST_PLACE.xid}::xid8) AS xid, coalesce(t.signed_id, ${FIRST_PLACE.id}::uuid) AS id) p
    ON CONFLICT (tree, epoch) DO NOTHING`;
  const begun = await lockTree(tx, tree, epoch);
  if (!begun) throw new Error('INSERT returned no row');
  if (begun.range.size > 0) return begun;
  const [row] = await sql<{ previous: string | null }>(tx)`
    SELECT previous FROM audit_trees WHERE tree = ${tree} AND epoch = ${epoch}`;
  const previous = row?.previous;
  if (!previous) return begun;
  return append(tx, begun, checkpointEntry(tree, headOf(previous)?.size ?? 0, previous));
}

async function lockTree(
  tx: EntityManager,
  tree: string,
  epoch: string,
): Promise<OpenTree | undefined> {
  const [row] = await sql<{
    size: string;
    range: Buffer;
    last_epoch: string;
    last_xid: string;
    last_id: string;
  }>(tx)`
    SELECT size, range, last_epoch, last_xid::text AS last_xid, last_id FROM audit_trees
    WHERE tree = ${tree} AND epoch = ${epoch} FOR UPDATE`;
  if (!row) return undefined;
  const last = { epoch: row.last_epoch, xid: row.last_xid, id: row.last_id };
  const range = new MerkleRange(Number(row.size), row.range);
  checkSize(range);
  return { tree, epoch, range, last };
}

/**
 * Checks that the size of a tree is a whole number from 0 to 2^53 - 1. Larger numbers are refused
 * because JavaScript rounds them.
 *
 * @throws DamagedTree
 */
export function checkSize({ size }: MerkleRange): void {
  if (!Number.isSafeInteger(size) || size < 0) throw new DamagedTree('its size is not possible');
}

/**
 * Appends leaves to a tree.
 *
 * @param entries the entries of the leaves, one after another
 * @param last the position in the feed of the last event among the leaves. Leaves that are
 *   checkpoints have no such position, so by default the one of the tree stays
 * @throws DamagedTree if the row of the tree does not have the size of the open tree
 */
export async function append(
  tx: EntityManager,
  { tree, epoch, range, last: before }: OpenTree,
  entries: Buffer,
  last = before,
): Promise<OpenTree> {
  const expected = range.size;
  const nodes: HashedSubtree[] = [];
  for (const entry of entriesOf(entries)) {
    range.append(leafHash(entry), (node) => {
      if (node.level % LEVELS_OF_NODES === 0) nodes.push(node);
    });
  }
  const tiles = tilesOf(expected, entries);
  const [row] = await sql<{ n: number }>(tx)`
    WITH grown AS (
      UPDATE audit_trees SET size = ${range.size}, range = ${byteaText(range.bytes)},
        last_epoch = ${last.epoch}, last_xid = ${last.xid}, last_id = ${last.id}
      WHERE tree = ${tree} AND epoch = ${epoch} AND size = ${expected} RETURNING tree, epoch
    ), leaves AS (
      INSERT INTO audit_leaves (tree, epoch, first, batch, entries, last_epoch, last_xid, last_id)
      SELECT g.tree, g.epoch, t.first, ${expected}::bigint, t.entries, ${last.epoch}::bigint, ${last.xid}::xid8, ${last.id}::uuid
      FROM grown g, unnest(${tiles.map(({ first }) => first)}::bigint[],
        ${tiles.map((tile) => byteaText(tile.entries))}::bytea[]) t (first, entries)
    ), nodes AS (
      INSERT INTO audit_nodes (tree, epoch, level, n, hash)
      SELECT g.tree, g.epoch, n.level, n.n, n.hash
      FROM grown g, unnest(${nodes.map(({ level }) => level)}::smallint[], ${nodes.map(({ n }) => n)}::bigint[],
        ${nodes.map((node) => byteaText(node.hash))}::bytea[]) n (level, n, hash)
    ) SELECT count(*)::int AS n FROM grown`;
  if (row?.n !== 1) throw new DamagedTree('the tree of the audit log has grown meanwhile');
  return { tree, epoch, range, last };
}

/**
 * Divides entries into the parts that are stored as rows, so that no row has leaves of two tiles.
 */
function tilesOf(
  size: number,
  entries: Buffer,
): { readonly first: number; readonly entries: Buffer }[] {
  const end = size + entries.length / ENTRY_BYTES;
  const tiles = [];
  for (let first = size; first < end;) {
    const next = Math.min(end, first - (first % TILE) + TILE);
    const part = entries.subarray((first - size) * ENTRY_BYTES, (next - size) * ENTRY_BYTES);
    tiles.push({ first, entries: part });
    first = next;
  }
  return tiles;
}
