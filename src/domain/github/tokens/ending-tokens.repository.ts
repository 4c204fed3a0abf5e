import type { RevocationCause } from '#domain/access-revocation/revocable.js';
import { lockUsers } from '#domain/access/issuance/lock-order.repository.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The SQL condition that a GitHub token may still be valid. Only such tokens must be revoked, so
 * only they are queued and counted.
 */
const MAY_BE_VALID = fragment`expires_at > now()`;

/**
 * Queues the tokens that a condition selects and that may still be valid, so that `TokenRevoker`
 * revokes them at GitHub. Returns their number, including those that were already in the queue. If
 * `TokenRevoker` has tried to revoke a token before, the time of the next try stays the same.
 *
 * @param of the SQL condition on the rows of `github_tokens`, such as that they belong to a user
 */
export async function queueTokens(
  tx: EntityManager,
  of: SqlFragment,
  { reason, revokedBy }: RevocationCause,
): Promise<number> {
  const queued = await sql<{ id: string }>(tx)`
    UPDATE github_tokens
    SET next_attempt_at = CASE WHEN attempts = 0 THEN '-infinity' ELSE next_attempt_at END,
        revoke_reason = ${reason}, revoked_by = ${revokedBy}
    WHERE id IN (SELECT id FROM github_tokens WHERE ${of} AND ${MAY_BE_VALID} ORDER BY id FOR UPDATE)
    RETURNING id`;
  return queued.length;
}

/**
 * Queues for revocation at GitHub the tokens of users whose access ends, as {@link queueTokens}
 * does. Returns the number of these tokens.
 */
export function queueUsers(
  tx: EntityManager,
  userIds: readonly string[],
  cause: RevocationCause,
): Promise<number> {
  return queueTokens(tx, fragment`user_id = ANY (${userIds}::uuid[])`, cause);
}

/**
 * Queues tokens of all users for immediate revocation, including those that were queued to be
 * revoked only when their session ends. Tokens that are being revoked already are left out.
 *
 * @param most the most tokens that the statement queues
 * @returns the number of queued tokens
 */
export async function queueUnqueued(
  tx: EntityManager,
  most: number,
  cause: RevocationCause,
): Promise<number> {
  const isWaiting = fragment`attempts = 0 AND next_attempt_at IS DISTINCT FROM '-infinity'`;
  const found = await sql<{ id: string; user_id: string }>(tx)`
    SELECT id, user_id FROM github_tokens WHERE ${isWaiting} AND ${MAY_BE_VALID} ORDER BY id LIMIT ${most}`;
  await lockUsers(
    tx,
    found.map((token) => token.user_id),
  );
  const ids = found.map(({ id }) => id);
  await queueTokens(tx, fragment`id = ANY (${ids}::uuid[])`, cause);
  return found.length;
}

/**
 * Counts the tokens of a user that {@link queueUsers} would queue. With `sessionId`, it counts only
 * those that were issued in this session. A page shows the number before the tokens end.
 */
export async function countTokens(
  tx: EntityManager,
  userId: string,
  sessionId?: string,
): Promise<number> {
  const [row] = await sql<{ tokens: number }>(tx)`
    SELECT count(*)::int AS tokens FROM github_tokens
    WHERE user_id = ${userId} AND ${MAY_BE_VALID}
      AND (${sessionId ?? null}::uuid IS NULL OR session_id = ${sessionId ?? null}::uuid)`;
  return row?.tokens ?? 0;
}

/**
 * Queues for revocation at GitHub every token of an installation that an organization has unlinked.
 * Returns the number of these tokens.
 */
export function queueInstallation(
  tx: EntityManager,
  installationId: number,
  revokedBy: string,
): Promise<number> {
  const cause = { reason: 'installation unlinked', revokedBy };
  return queueTokens(tx, fragment`installation_id = ${installationId}`, cause);
}

/**
 * Queues for revocation at GitHub the tokens of an organization that open every repository of their
 * installation. Returns the number of these tokens.
 */
export function queueUnnamed(tx: EntityManager, orgId: string, revokedBy: string): Promise<number> {
  const cause = { reason: 'repositories must be named', revokedBy };
  return queueTokens(tx, fragment`org_id = ${orgId} AND repositories IS NULL`, cause);
}

/**
 * Deletes the rows of the tokens of an installation that was deleted at GitHub, because GitHub has
 * ended these tokens.
 */
export async function forgetInstallation(tx: EntityManager, installationId: number): Promise<void> {
  await sql(tx)`DELETE FROM github_tokens WHERE installation_id = ${installationId}`;
}

/**
 * Counts the tokens that {@link queueInstallation} would queue now, by the id of each installation
 * of an organization. A page shows the numbers before the tokens end.
 */
export async function countLiveTokens(
  tx: EntityManager,
  orgId: string,
): Promise<ReadonlyMap<number, number>> {
  const rows = await sql<{ id: string; tokens: number }>(tx)`
    SELECT n.id, count(*)::int AS tokens
    FROM github_installations n JOIN github_tokens t ON t.installation_id = n.id
    WHERE n.org_id = ${orgId} AND t.expires_at > now()
    GROUP BY n.id`;
  return new Map(rows.map(({ id, tokens }) => [Number(id), tokens]));
}
