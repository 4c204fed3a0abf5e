import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The milliseconds after a round of sealing from which on the next one is late. */
export const SEAL_IS_LATE = 600_000;

/** A published checkpoint that the database does not have. */
export interface SealGap {
  readonly tree: string;
  readonly epoch: string;
  /** The size of the published checkpoint, and that of the last one in the database. */
  readonly published: number;
  readonly kept: number;
  /** True if the database has another checkpoint of the same size. */
  readonly isContradicted: boolean;
}

/** Reads the milliseconds since the last round of sealing, and the checkpoints that wait. */
export async function sealState(
  tx: EntityManager,
): Promise<{ readonly age: number | undefined; readonly unpublished: number }> {
  const [row] = await sql<{ age: number | null; unpublished: number }>(tx)`
    SELECT CASE WHEN s.round_at > 'epoch' THEN extract(epoch FROM clock_timestamp() - s.round_at) * 1000 END::float8 AS age,
      (SELECT count(*)::int FROM audit_checkpoints WHERE published_at IS NULL) AS unpublished
    FROM audit_seal s`;
  return { age: row?.age ?? undefined, unpublished: row?.unpublished ?? 0 };
}

/** A checkpoint in a file of them: signed texts, answers of the API, or lines of the log. */
const PUBLISHED =
  /\/([0-9a-f-]{36})\/(\d{1,18})(?:\n|\\n|",")(\d{1,15})(?:\n|\\n|",")([A-Za-z0-9+/]{43}=)/g;

/**
 * Compares published checkpoints with the database, and returns one gap for each tree: the largest
 * checkpoint that the database does not have.
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
