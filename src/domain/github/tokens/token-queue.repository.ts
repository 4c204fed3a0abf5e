import { recordAudit } from '#domain/audit/audit.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The name from which the encryption key of GitHub tokens is derived. No other kind of secret uses
 * this name, so that the key encrypts nothing else.
 */
export const SEALED_TOKEN = 'github installation token';

/**
 * A queued token that this replica has reserved. Until the lease (the time of the reservation)
 * ends, only this replica may revoke the token.
 */
export interface QueuedToken {
  readonly id: string;
  readonly sealed: string;
  readonly expiresAt: Date;
  /** The number of tries to revoke the token, including this one. It also identifies the lease. */
  readonly attempts: number;
}

interface Row {
  id: string;
  sealed: string;
  expires_at: Date;
  attempts: number;
}

/**
 * Reserves for this replica, until the lease ends, at most `most` queued tokens that are due. The
 * statement is a transaction of its own, so that no lock is held during the request to GitHub. If
 * the process is killed, another replica takes the tokens after the lease.
 */
export async function takeQueued(
  tx: EntityManager,
  { now, leaseEnds, most }: { readonly now: Date; readonly leaseEnds: Date; readonly most: number },
): Promise<QueuedToken[]> {
  const rows = await sql<Row>(tx)`
    UPDATE github_tokens SET next_attempt_at = ${leaseEnds}, attempts = attempts + 1
    WHERE id IN (SELECT id FROM github_tokens WHERE next_attempt_at <= ${now}
                 ORDER BY next_attempt_at LIMIT ${most} FOR UPDATE SKIP LOCKED)
    RETURNING id, sealed, expires_at, attempts`;
  return rows.map((row) => ({
    id: row.id,
    sealed: row.sealed,
    expiresAt: row.expires_at,
    attempts: row.attempts,
  }));
}

/**
 * The reason why a token leaves the queue. `gone`: GitHub did not know the token any more.
 * `expired`: it expired before GitHub revoked it. `unreadable`: no root secret of the service
 * decrypts it.
 */
export type TokenEnd = 'revoked' | 'gone' | 'expired' | 'unreadable';

/**
 * Removes a token from the queue and records its audit event. If the leases of two replicas
 * overlap, only one of them records the event.
 */
export async function settle(tx: EntityManager, token: QueuedToken, end: TokenEnd): Promise<void> {
  const type =
    end === 'revoked' || end === 'gone' ? 'github_token_revoked' : 'github_revocation_failed';
  await sql(tx)`
    WITH ended AS (
      DELETE FROM github_tokens WHERE id = ${token.id} RETURNING *
    )
    ${recordAudit(
      {
        type,
        subjectId: fragment`e.user_id`,
        orgId: fragment`e.org_id`,
        origin: fragment`NULL::text, NULL::inet, NULL::text`,
        details: fragment`jsonb_build_object('token_id', e.id, 'owner', e.owner, 'installation_id', e.installation_id,
          'outcome', ${end}::text, 'reason', e.revoke_reason, 'revoked_by', e.revoked_by, 'attempts', e.attempts)`,
      },
      fragment`FROM ended e`,
    )}`;
}

/**
 * Sets the time of the next try to revoke a token, unless another replica has taken the token
 * meanwhile.
 */
export async function postpone(
  tx: EntityManager,
  { id, attempts }: QueuedToken,
  until: Date,
): Promise<void> {
  await sql(tx)`
    UPDATE github_tokens SET next_attempt_at = ${until} WHERE id = ${id} AND attempts = ${attempts}`;
}

/** Reads the next encrypted tokens after the given id, in the order of their ids. */
export async function sealedAfter(
  tx: EntityManager,
  id: string,
  most: number,
): Promise<{ readonly id: string; readonly sealed: string }[]> {
  return sql<{ id: string; sealed: string }>(
    tx,
  )`SELECT id, sealed FROM github_tokens WHERE id > ${id} ORDER BY id LIMIT ${most}`;
}

/**
 * Replaces the ciphertext of a token by one under the present root secret, unless another replica
 * has already done so.
 */
export async function reseal(
  tx: EntityManager,
  id: string,
  from: string,
  to: string,
): Promise<void> {
  await sql(tx)`UPDATE github_tokens SET sealed = ${to} WHERE id = ${id} AND sealed = ${from}`;
}
