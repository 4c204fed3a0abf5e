import { IS_VALID_TOKEN } from '#domain/directory/api-tokens/api-tokens.repository.js';
import { isInRevokedRange } from '#domain/ssh/serials/revoked-ranges.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { RevokedCounts } from '#domain/access-revocation/revocable.js';

/**
 * The most users whose sessions and credentials are counted for a page, because a count of more
 * would take too long.
 */
const MOST_COUNTED = 1000;

/** A preview of an act that ends the access of users, for the page that asks for a confirmation. */
export interface EndPreview {
  readonly users: number;
  /**
   * The counts of the items that would end; null if there are more users than {@link MOST_COUNTED}.
   */
  readonly counts: RevokedCounts | null;
}

/**
 * Counts the sessions and credentials of some users that would end with their access. Expired items
 * do not count, because the revocation leaves them out, too.
 */
export async function previewEnd(
  tx: EntityManager,
  userIds: readonly string[],
): Promise<EndPreview> {
  if (userIds.length > MOST_COUNTED) return { users: userIds.length, counts: null };
  const ids = fragment`ANY (${userIds}::uuid[])`;
  const [counts] = await sql<Record<string, number>>(tx)`
    SELECT (SELECT count(*)::int FROM sessions WHERE user_id = ${ids} AND expires_at > now()) AS sessions,
           (SELECT count(*)::int FROM ssh_certificates
            WHERE user_id = ${ids} AND revoked_at IS NULL AND valid_before > now()
              AND NOT ${isInRevokedRange(fragment`serial`)}) AS certificates,
           (SELECT count(*)::int FROM oauth_grants WHERE user_id = ${ids} AND expires_at > now()) AS grants,
           (SELECT count(*)::int FROM oauth_grants g JOIN oauth_artifacts t ON t.grant_id = g.id
            WHERE g.user_id = ${ids} AND g.expires_at > now() AND t.model = 'AccessToken'
              AND t.consumed_at IS NULL AND t.expires_at > now())
         + (SELECT count(*)::int FROM oauth_clients c JOIN oauth_artifacts t ON t.client_id = c.id
            WHERE c.owner_id = ${ids} AND t.model = 'ClientCredentials' AND t.expires_at > now()) AS tokens,
           (SELECT count(*)::int FROM github_tokens WHERE user_id = ${ids} AND expires_at > now()) AS github_tokens,
           (SELECT count(*)::int FROM api_tokens t WHERE t.created_by = ${ids} AND ${IS_VALID_TOKEN}) AS api_tokens`;
  return { users: userIds.length, counts: { ...counts } };
}
