import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** Counts the items that give access now, such as sessions, by their names in the API. */
export async function countOnRecord(tx: EntityManager): Promise<RevokedCounts> {
  const [row] = await sql<Record<string, number>>(tx)`
    SELECT (SELECT count(*)::int FROM sessions WHERE expires_at > now()) AS sessions,
           (SELECT count(*)::int FROM oauth_grants WHERE expires_at > now()) AS grants,
           (SELECT count(*)::int FROM oauth_artifacts
            WHERE model IN ('AccessToken', 'ClientCredentials') AND consumed_at IS NULL AND expires_at > now()) AS tokens,
           (SELECT count(*)::int FROM ssh_certificates WHERE revoked_at IS NULL AND valid_before > now()) AS certificates,
           (SELECT count(*)::int FROM github_tokens WHERE expires_at > now()) AS github_tokens,
           (SELECT count(*)::int FROM enrollment_passes
            WHERE hash IS NOT NULL AND expires_at > now()) AS enrollment_passes,
           (SELECT count(*)::int FROM api_tokens WHERE revoked_at IS NULL AND expires_at > now()) AS api_tokens`;
  return { ...row };
}
