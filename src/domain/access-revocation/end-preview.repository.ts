import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { RevokedCounts } from './revocable.js';

/** The most users whose sessions and credentials are counted for a page. */
const MOST_COUNTED = 1000;

/** A forecast of an act that ends the access of users, for the page that asks for a confirmation. */
export interface EndPreview {
  readonly users: number;
  /** Null for more users than a page counts for. */
  readonly counts: RevokedCounts | null;
}

/** Counts what some users hold, by the conditions by which the end of their access counts. */
export async function previewEnd(
  tx: EntityManager,
  userIds: readonly string[],
): Promise<EndPreview> {
  if (userIds.length > MOST_COUNTED) return { users: userIds.length, counts: null };
  const [counts] = await sql<{ sessions: number; certificates: number; github_tokens: number }>(tx)`
    SELECT (SELECT count(*)::int FROM sessions WHERE user_id = ANY (${userIds}::uuid[])) AS sessions,
           (SELECT count(*)::int FROM ssh_certificates
            WHERE user_id = ANY (${userIds}::uuid[]) AND revoked_at IS NULL) AS certificates,
           (SELECT count(*)::int FROM github_tokens
            WHERE user_id = ANY (${userIds}::uuid[]) AND expires_at > now()) AS github_tokens`;
  return { users: userIds.length, counts: { ...counts } };
}
