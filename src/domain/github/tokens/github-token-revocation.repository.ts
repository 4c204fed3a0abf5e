import {
  EVERY_SCOPE,
  idsOf,
  ON_RECORD_BATCH,
  withoutZeros,
  type CountOfKey,
  type EndedBatch,
  type LockedUser,
  type Revocable,
  type RevocationCause,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { REVOCATION_ORDER } from '#domain/access-revocation/revocation-order.js';
import {
  fittingTouchSql,
  hasConditionsSql,
  isMetBy,
} from '#domain/access/reach/reach.repository.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { countTokens, queueTokens, queueUnqueued, queueUsers } from './ending-tokens.repository.js';
import type { TokenRevoker } from './token-revoker.service.js';

/**
 * Returns the SQL condition that a session `s`, in which a token `c` was issued, would not meet the
 * conditions of the installation now without the touches of one security key.
 *
 * @param keyId the id of the security key
 */
function countsTouchOf(keyId: SqlFragment): SqlFragment {
  const t = fragment`t`;
  const touch = fittingTouchSql(t, fragment`(s.touches - ${keyId}::text)`);
  return fragment`(s.touches ? ${keyId}::text AND EXISTS (
    SELECT FROM access_targets t
    WHERE t.installation_id = c.installation_id AND ${hasConditionsSql(t)} AND NOT ${isMetBy(t, touch)}))`;
}

/**
 * Queues the GitHub tokens of users whose access ends, in the transaction that ends the access.
 * {@link TokenRevoker} then revokes the tokens at GitHub, which may take several tries.
 */
export class GitHubTokenRevocation implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.gitHubTokens;
  readonly revocationScopes = EVERY_SCOPE;

  constructor(private readonly revoker: Pick<TokenRevoker, 'wakeAfter'>) {}

  /**
   * Queues all tokens of some users that may still be valid, so that {@link TokenRevoker} revokes
   * them at GitHub. When the sessions of the users ended, most of these tokens were queued already,
   * with the reason `session ended`. This method replaces that reason by the cause of the event.
   *
   * @returns the number of these tokens, including those that were in the queue before
   */
  async revoke(
    tx: EntityManager,
    users: readonly LockedUser[],
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    const queued = await queueUsers(tx, idsOf(users), cause);
    if (queued === 0) return {};
    this.revoker.wakeAfter(tx);
    return { github_tokens: queued };
  }

  /**
   * Queues a batch of the tokens of all users, because the database has lost commits and
   * revocations may be among them. Tokens that are being revoked already stay as they are.
   */
  async revokeOnRecord(tx: EntityManager, cause: RevocationCause): Promise<EndedBatch> {
    const queued = await queueUnqueued(tx, ON_RECORD_BATCH, cause);
    this.revoker.wakeAfter(tx);
    return {
      counts: withoutZeros({ github_tokens: queued }),
      next: queued < ON_RECORD_BATCH ? undefined : '',
    };
  }

  /**
   * Counts the tokens of a user that would be queued for revocation if the access of the user
   * ended.
   */
  async count(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    return { github_tokens: await countTokens(tx, id) };
  }

  /**
   * Queues the tokens that a user got in other sessions by a touch of the security key, if no other
   * touch of the session meets the conditions of the installation. The tokens of sessions that were
   * opened with the key are already in the queue: a database trigger queued them when the sessions
   * ended. The worker of the queue wakes after the commit.
   */
  async revokeOfKey(
    tx: EntityManager,
    { id }: LockedUser,
    keyId: string,
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    const touched = fragment`id IN (
      SELECT c.id FROM github_tokens c JOIN sessions s ON s.id = c.session_id
      WHERE c.user_id = ${id} AND ${countsTouchOf(fragment`${keyId}`)})`;
    await queueTokens(tx, touched, cause);
    this.revoker.wakeAfter(tx);
    return {};
  }

  /**
   * Counts the tokens of a user that are not being revoked yet, by the security key with whose
   * removal they end: the key that opened their session, or one whose touch the conditions of the
   * installation count.
   */
  async countByKey(tx: EntityManager, userId: string): Promise<CountOfKey[]> {
    const rows = await sql<{ key_id: string; tokens: number }>(tx)`
      SELECT k.id AS key_id, count(*)::int AS tokens
      FROM github_tokens c JOIN sessions s ON s.id = c.session_id JOIN authenticators k ON k.user_id = c.user_id
      WHERE c.user_id = ${userId} AND c.expires_at > now() AND (c.next_attempt_at IS NULL OR c.next_attempt_at > now())
        AND (s.authenticator_id = k.id OR ${countsTouchOf(fragment`k.id`)})
      GROUP BY k.id`;
    return rows.map(({ key_id: keyId, tokens }) => ({ keyId, count: { github_tokens: tokens } }));
  }
}
