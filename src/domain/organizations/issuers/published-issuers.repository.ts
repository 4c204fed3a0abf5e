import type { JWK } from 'jose';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { inOrder, sql } from '#platform/database/statements/sql.js';

/**
 * Reads the published keys of issuers by their labels, in the order of the labels; undefined for a
 * label that no organization has now.
 */
export async function publishedIssuers(
  tx: EntityManager,
  labels: readonly string[],
): Promise<(readonly JWK[] | undefined)[]> {
  const rows = await sql<{ n: number; keys: JWK[] }>(tx)`
    SELECT asked.n::int AS n,
           (SELECT coalesce(jsonb_agg(y.public_jwk ORDER BY y.signs_from), '[]') FROM organization_issuer_keys y
            WHERE y.label = l.label AND y.org_id = l.org_id
              AND (y.published_until IS NULL OR y.published_until > now())) AS keys
    FROM unnest(${labels}::text[]) WITH ORDINALITY AS asked (label, n)
    JOIN organization_issuers l ON l.label = asked.label AND l.released_at IS NULL AND l.org_id IS NOT NULL`;
  return inOrder(labels.length, rows, ({ keys }) => keys);
}
