import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The milliseconds without a round of sealing after which the seal counts as late. */
export const SEAL_IS_LATE = 600_000;

/** A published checkpoint that the database does not have, or contradicts. */
export interface SealGap {
  readonly tree: string;
  readonly epoch: string;
  /**
   * The number of leaves of the published checkpoint. `kept` is the number of leaves of the last
   * checkpoint that the database has of the same tree; 0 if there is none.
   */
  readonly published: number;
  readonly kept: number;
  /**
   * True if the database has a checkpoint of the same size with another root, so that its events
   * differ from the published ones.
   */
  readonly isContradicted: boolean;
}

/**
 * Reads the state of the seal. `age` is the time in milliseconds since the last round of sealing;
 * undefined before the first round. `unpublished` is the number of checkpoints that are not
 * published yet.
 */
export async function sealState(
  tx: EntityManager,
): Promise<{ readonly age: number | undefined; readonly unpublished: number }> {
  const [row] = await sql<{ age: number | null; unpublished: number }>(tx)`
    SELECT CASE WHEN s.round_at > 'epoch' THEN extract(epoch FROM clock_timestamp() - s.round_at) * 1000 END::float8 AS age,
      (SELECT count(*)::int FROM audit_checkpoints WHERE published_at IS NULL) AS unpublished
    FROM audit_seal s`;
  return { age: row?.age ?? undefined, unpublished: row?.unpublished ?? 0 };
}

/**
 * Finds the tree, the epoch, the size and the root of each checkpoint in a text. The text has
 * signed checkpoints, API responses with them, or lines of the log, so line breaks may be escaped.
 */
const PUBLISHED =
  /\/([0-9a-f-]{36})\/(\d{1,18})(?:\n|\\n|",")(\d{1,15})(?:\n|\\n|",")([A-Za-z0-9+/]{43}=)/g;

/**
 * Compares published checkpoints with the database. Of each tree and epoch only the largest
 * checkpoint is compared. Returns the checkpoints that the database does not have or contradicts.
 */
export async function sealGaps(tx: EntityManager, published: string): Promise<SealGap[]> {
  const largest = new Map<string, { tree: string; epoch: string; size: number; root: string }>();
  for (const [, tree = '', epoch = '', size, root = ''] of published.matchAll(PUBLISHED)) {
    const key = `${tree}/${epoch}`;
    const one = { tree, epoch, size: Number(size), root };
    if (one.size > (largest.get(key)?.size ?? 0)) largest.set(key, one);
  }
  const gaps: SealGap[] = [];
  for (const { tree, epoch, size, root } of largest.values()) {
    const [row] = await sql<{ kept: string | null; note: string | null }>(tx)`
      SELECT (SELECT signed_size FROM audit_trees WHERE tree = ${tree}::uuid AND epoch = ${epoch}::bigint) AS kept,
        (SELECT note FROM audit_checkpoints
         WHERE tree = ${tree}::uuid AND epoch = ${epoch}::bigint AND size = ${size}::bigint) AS note`;
    const kept = Number(row?.kept ?? 0);
    const isContradicted = row?.note?.includes(root) === false;
    if (kept < size || isContradicted) {
      gaps.push({ tree, epoch, published: size, kept, isContradicted });
    }
  }
  return gaps;
}
