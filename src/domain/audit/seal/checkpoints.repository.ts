import { byteaText, fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { DEPLOYMENT } from './checkpoint.js';
import { MerkleRange } from './merkle-tree.js';

/** A Merkle tree of the audit log that has grown since its last checkpoint. */
export interface GrownTree {
  readonly tree: string;
  readonly epoch: string;
  readonly range: MerkleRange;
  /**
   * The time of the last checkpoint; null if there is none. The next checkpoint has no earlier
   * time.
   */
  readonly signedAt: Date | null;
  /** The position in the feed of the last event in the tree. */
  readonly place: readonly [epoch: string, xid: string, id: string];
}

/**
 * A checkpoint of a Merkle tree of audit events: `size` is the number of its leaves, and `note` is
 * the signed text (c2sp.org/tlog-checkpoint).
 */
export interface Checkpoint {
  readonly tree: string;
  readonly epoch: string;
  readonly size: number;
  readonly note: string;
}

/**
 * Takes the next round of sealing for this process. Returns false if another process has begun a
 * round, or has renewed its claim on one, within the given seconds. If the clock was set back, this
 * process can take the round without that wait.
 */
export async function takeRound(tx: EntityManager, seconds: number): Promise<boolean> {
  const taken = await sql(tx)`
    UPDATE audit_seal SET round_at = clock_timestamp()
    WHERE clock_timestamp() < round_at OR clock_timestamp() >= round_at + make_interval(secs => ${seconds}::float8)
    RETURNING only_row`;
  return taken.length > 0;
}

/**
 * Renews the claim of this process on its round of sealing, so that no other process takes the
 * round.
 */
export async function keepRound(tx: EntityManager): Promise<void> {
  await sql(tx)`UPDATE audit_seal SET round_at = clock_timestamp()`;
}

/**
 * Lists the trees of the present epoch that have grown since their last checkpoints. If the service
 * has not yet confirmed the present start of the database server, no tree is listed.
 */
export async function listGrown(
  tx: EntityManager,
  which: 'organizations' | 'deployment',
): Promise<GrownTree[]> {
  const rows = await sql<{
    tree: string;
    epoch: string;
    size: string;
    range: Buffer;
    signed_at: Date | null;
    last_epoch: string;
    last_xid: string;
    last_id: string;
  }>(tx)`
    SELECT t.tree, t.epoch, t.size, t.range, t.signed_at, t.last_epoch, t.last_xid::text AS last_xid, t.last_id
    FROM audit_trees t JOIN database_identity d ON d.epoch = t.epoch AND d.started_at = pg_postmaster_start_time()
    WHERE t.size > t.signed_size AND (t.tree = ${DEPLOYMENT}) = ${which === 'deployment'}::boolean`;
  return rows.map(({ tree, epoch, size, range, signed_at: signedAt, ...last }) => ({
    tree,
    epoch,
    range: new MerkleRange(Number(size), range),
    signedAt,
    place: [last.last_epoch, last.last_xid, last.last_id],
  }));
}

/**
 * Returns the epoch of the newest tree with the id `tree`, and the size of its last checkpoint.
 * This is for the time before the present epoch has begun a tree with this id. If there is no such
 * tree at all, the epoch is undefined and the size 0.
 *
 * @returns undefined if the present epoch has a tree
 */
export async function endedTree(
  tx: EntityManager,
  tree: string,
): Promise<{ readonly epoch: string | undefined; readonly size: number } | undefined> {
  const [row] = await sql<{ epoch: string | null; size: string; is_begun: boolean }>(tx)`
    SELECT t.epoch, coalesce(t.signed_size, 0) AS size, coalesce(t.epoch >= d.epoch, false) AS is_begun
    FROM database_identity d
    LEFT JOIN LATERAL (
      SELECT * FROM audit_trees t WHERE t.tree = ${tree} ORDER BY t.epoch DESC LIMIT 1) t ON true`;
  if (!row || row.is_begun) return undefined;
  return { epoch: row.epoch ?? undefined, size: Number(row.size) };
}

/**
 * Stores a checkpoint. Returns false, and stores nothing, if the tree has a checkpoint of the same
 * size or a larger one.
 *
 * @param lacksLeaf true for a checkpoint of an organization that the tree of the deployment does
 *   not get in this transaction. {@link takeWithoutLeaf} returns it later
 */
export async function recordCheckpoint(
  tx: EntityManager,
  { tree, epoch, range, place: [lastEpoch, xid, id] }: GrownTree,
  {
    note,
    at,
    lacksLeaf,
  }: { readonly note: string; readonly at: Date; readonly lacksLeaf: boolean },
): Promise<boolean> {
  const recorded = await sql(tx)`
    WITH signed AS (
      UPDATE audit_trees SET signed_size = ${range.size}, signed_at = ${at},
        signed_epoch = ${lastEpoch}, signed_xid = ${xid}, signed_id = ${id}, lacks_leaf = ${lacksLeaf}
      WHERE tree = ${tree} AND epoch = ${epoch} AND signed_size < ${range.size} RETURNING tree, epoch)
    INSERT INTO audit_checkpoints (tree, epoch, size, range, note, signed_at)
    SELECT s.tree, s.epoch, ${range.size}::bigint, ${byteaText(range.bytes)}::bytea, ${note}::text, ${at}::timestamptz
    FROM signed s RETURNING tree`;
  return recorded.length > 0;
}

/**
 * Returns true if the tree of the deployment lacks the last checkpoint of an organization in the
 * present epoch.
 */
export async function isAnyWithoutLeaf(tx: EntityManager): Promise<boolean> {
  const [row] = await sql<{ is_any: boolean }>(tx)`
    SELECT EXISTS (SELECT FROM audit_trees t JOIN database_identity d ON d.epoch = t.epoch WHERE t.lacks_leaf) AS is_any`;
  return row?.is_any === true;
}

/**
 * Returns the last checkpoints of organizations that the tree of the deployment lacks, at most
 * `limit`. The caller has locked that tree and appends them to it in the same transaction, because
 * they count as its leaves from now on.
 */
export async function takeWithoutLeaf(
  tx: EntityManager,
  epoch: string,
  limit: number,
): Promise<Checkpoint[]> {
  const taken = await sql<{ tree: string }>(tx)`
    UPDATE audit_trees SET lacks_leaf = false
    WHERE epoch = ${epoch} AND lacks_leaf
      AND tree IN (SELECT w.tree FROM audit_trees w WHERE w.epoch = ${epoch} AND w.lacks_leaf ORDER BY w.tree LIMIT ${limit})
    RETURNING tree`;
  // A second statement, because another process may have stored a larger checkpoint while the first
  // one waited for its lock.
  return checkpointsOf(
    sql<StoredCheckpoint>(tx)`
      SELECT c.tree, c.epoch, c.size, c.note
      FROM audit_trees t JOIN audit_checkpoints c ON c.tree = t.tree AND c.epoch = t.epoch AND c.size = t.signed_size
      WHERE t.epoch = ${epoch} AND t.tree = ANY (${taken.map(({ tree }) => tree)}::uuid[]) ORDER BY c.tree`,
  );
}

/** Lists checkpoints that were not written to the log yet, the oldest first. */
export function listUnlogged(tx: EntityManager, limit: number): Promise<Checkpoint[]> {
  return checkpointsOf(
    sql<StoredCheckpoint>(tx)`
      SELECT tree, epoch, size, note FROM audit_checkpoints
      WHERE published_at IS NULL AND logged_at IS NULL ORDER BY signed_at LIMIT ${limit}`,
  );
}

/** Records that checkpoints were written to the log. */
export function recordLogged(tx: EntityManager, checkpoints: readonly Checkpoint[]): Promise<void> {
  return recordTime(tx, fragment`logged_at`, checkpoints);
}

/**
 * Lists checkpoints that were written to the log, but not to the object store yet, the oldest
 * first.
 */
export function listUnpublished(tx: EntityManager, limit: number): Promise<Checkpoint[]> {
  return checkpointsOf(
    sql<StoredCheckpoint>(tx)`
      SELECT tree, epoch, size, note FROM audit_checkpoints
      WHERE published_at IS NULL AND logged_at IS NOT NULL ORDER BY signed_at LIMIT ${limit}`,
  );
}

/**
 * Records that checkpoints were published: witnesses find them in the log and in the object store.
 */
export function recordPublished(
  tx: EntityManager,
  checkpoints: readonly Checkpoint[],
): Promise<void> {
  return recordTime(tx, fragment`published_at`, checkpoints);
}

/** Sets a column of checkpoints to the present time. */
async function recordTime(
  tx: EntityManager,
  column: SqlFragment,
  checkpoints: readonly Checkpoint[],
): Promise<void> {
  await sql(tx)`
    UPDATE audit_checkpoints c SET ${column} = clock_timestamp()
    FROM unnest(${checkpoints.map(({ tree }) => tree)}::uuid[], ${checkpoints.map(({ epoch }) => epoch)}::bigint[],
                ${checkpoints.map(({ size }) => size)}::bigint[]) AS l (tree, epoch, size)
    WHERE c.tree = l.tree AND c.epoch = l.epoch AND c.size = l.size`;
}

/**
 * Lists the checkpoints of a tree, over all epochs, that follow an epoch and a size, the smallest
 * first.
 */
export function listCheckpoints(
  tx: EntityManager,
  tree: string,
  after: { readonly epoch: string; readonly size: number },
  limit: number,
): Promise<Checkpoint[]> {
  return checkpointsOf(
    sql<StoredCheckpoint>(tx)`
      SELECT tree, epoch, size, note FROM audit_checkpoints
      WHERE tree = ${tree} AND (epoch, size) > (${after.epoch}::bigint, ${after.size}::bigint)
      ORDER BY epoch, size LIMIT ${limit}`,
  );
}

/** Returns the newest checkpoint of a tree; undefined if it has none. */
export async function newestCheckpoint(
  tx: EntityManager,
  tree: string,
): Promise<Checkpoint | undefined> {
  const [newest] = await checkpointsOf(
    sql<StoredCheckpoint>(tx)`
      SELECT tree, epoch, size, note FROM audit_checkpoints
      WHERE tree = ${tree} ORDER BY epoch DESC, size DESC LIMIT 1`,
  );
  return newest;
}

/**
 * Lists, for each checkpoint of a tree with at least `least` and at most `most` leaves, the hashes
 * of its largest complete subtrees.
 */
export async function listRanges(
  tx: EntityManager,
  tree: string,
  epoch: string,
  [least, most]: readonly [number, number],
): Promise<MerkleRange[]> {
  const rows = await sql<{ size: string; range: Buffer }>(tx)`
    SELECT size, range FROM audit_checkpoints
    WHERE tree = ${tree} AND epoch = ${epoch} AND size BETWEEN ${least}::bigint AND ${most}::bigint ORDER BY size`;
  return rows.map(({ size, range }) => new MerkleRange(Number(size), range));
}

type StoredCheckpoint = Omit<Checkpoint, 'size'> & { readonly size: string };

async function checkpointsOf(rows: Promise<StoredCheckpoint[]>): Promise<Checkpoint[]> {
  return (await rows).map((row) => ({ ...row, size: Number(row.size) }));
}
