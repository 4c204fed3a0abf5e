import {
  BY_DELETED_ROW,
  idsOf,
  type LockedUser,
  type Revocable,
  type RevocationScope,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { REVOCATION_ORDER } from '#domain/access-revocation/revocation-order.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The facts that are recorded about an SSH key whose attestation proves that it is inside a
 * security key.
 */
export interface KeyAttestation {
  readonly aaguid: string | null;
  /**
   * The vendor's name of the model of the security key; null if `config/authenticator-models.json`
   * does not have it.
   */
  readonly model: string | null;
  readonly verifyRequired: boolean;
}

/**
 * Records the attestation of a user's SSH key. The caller has locked the row of the user, so that
 * the account cannot be removed or deactivated meanwhile. If the key is recorded already, nothing
 * changes, because a security key attests an SSH key only once, at its creation.
 *
 * @param keyFingerprint `SHA256:…`, which is stored in the column `public_key`
 */
export async function recordAttestedKey(
  tx: EntityManager,
  userId: string,
  keyFingerprint: string,
  { aaguid, model, verifyRequired }: KeyAttestation,
): Promise<void> {
  await sql(tx)`
    INSERT INTO ssh_attested_keys (user_id, public_key, aaguid, model, verify_required)
    VALUES (${userId}, ${keyFingerprint}, ${aaguid}, ${model}, ${verifyRequired})
    ON CONFLICT (user_id, public_key) DO NOTHING`;
}

/** Returns true if the attestation of a user's SSH key is recorded. */
export async function isAttestedKey(
  tx: EntityManager,
  userId: string,
  keyFingerprint: string,
): Promise<boolean> {
  const rows = await sql(tx)`
    SELECT FROM ssh_attested_keys WHERE user_id = ${userId} AND public_key = ${keyFingerprint}`;
  return rows.length > 0;
}

/**
 * Deletes the recorded attestations of a user's SSH keys if all credentials of the user are
 * revoked. If the account is deleted, a foreign key deletes them. If the account is deactivated,
 * they stay, like the enrolled security keys.
 */
export class AttestedKeyRevocation implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.attestedSshKeys;
  readonly revocationScopes: ReadonlySet<RevocationScope> = new Set(['credentials-revoked']);
  readonly endedByForeignKey = BY_DELETED_ROW;
  /**
   * Null, because the attestations stay even if a failover of the database has lost commits: an
   * attestation opens nothing without a session.
   */
  readonly revokeOnRecord = null;

  /** Deletes all attestations of some users. The result contains their number if it is not zero. */
  async revoke(tx: EntityManager, users: readonly LockedUser[]): Promise<RevokedCounts> {
    const deleted = await sql<{ public_key: string }>(tx)`
      DELETE FROM ssh_attested_keys WHERE user_id = ANY (${idsOf(users)}::uuid[]) RETURNING public_key`;
    return deleted.length === 0 ? {} : { ssh_keys: deleted.length };
  }

  /** Counts the recorded attestations that {@link revoke} would delete for a user. */
  async count(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const [row] = await sql<{ keys: number }>(tx)`
      SELECT count(*)::int AS keys FROM ssh_attested_keys WHERE user_id = ${id}`;
    return { ssh_keys: row?.keys ?? 0 };
  }
}
