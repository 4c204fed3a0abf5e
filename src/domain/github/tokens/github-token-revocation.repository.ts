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
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { countTokens, queueUnqueued, queueUsers } from './ending-tokens.repository.js';
import type { TokenRevoker } from './token-revoker.service.js';

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
   * Wakes the worker of the queue after the removal of a key has committed. The tokens are already
   * in the queue: a database trigger queued them when the sessions that were opened with the key
   * ended.
   */
  revokeOfKey(tx: EntityManager): Promise<RevokedCounts> {
    this.revoker.wakeAfter(tx);
    return Promise.resolve({});
  }

  /**
   * Counts the tokens of a user that are not being revoked yet, by the security key that opened
   * their session.
   */
  async countByKey(tx: EntityManager, userId: string): Promise<CountOfKey[]> {
    const rows = await sql<{ key_id: string; tokens: number }>(tx)`
      SELECT s.authenticator_id AS key_id, count(*)::int AS tokens
      FROM github_tokens t JOIN sessions s ON s.id = t.session_id
      WHERE t.user_id = ${userId} AND s.authenticator_id IS NOT NULL AND t.expires_at > now()
        AND (t.next_attempt_at IS NULL OR t.next_attempt_at > now())
      GROUP BY s.authenticator_id`;
    return rows.map(({ key_id: keyId, tokens }) => ({ keyId, count: { github_tokens: tokens } }));
  }
}
