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

/** The proof that an SSH key lives in a security key, as the record of it is kept. */
export interface KeyAttestation {
  readonly aaguid: string | null;
  /** The vendor's name of the model, if the table of models has it. */
  readonly model: string | null;
  readonly verifyRequired: boolean;
}

/**
 * Records a proven key of a user. The caller has locked the row of the user, so that an end of the
 * account comes before or after. An existing record stays, because a security key attests a key
 * once.
 *
 * @param keyFingerprint `SHA256:…`
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

/** Returns whether a key of a user is proven. */
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
 * Deletes the proofs of a user when all credentials are revoked. When the account is deleted, a
 * foreign key deletes them. When it is deactivated, they stay, as the enrolled keys do.
 */
export class AttestedKeyRevocation implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.attestedSshKeys;
  readonly revocationScopes: ReadonlySet<RevocationScope> = new Set(['credentials-revoked']);
  readonly endedByForeignKey = BY_DELETED_ROW;
  /** A loss of commits ends no proof, because a proof opens nothing without a session. */
  readonly revokeOnRecord = null;

  /** Deletes every proof of some users. The audit event counts them if there were some. */
  async revoke(tx: EntityManager, users: readonly LockedUser[]): Promise<RevokedCounts> {
    const deleted = await sql<{ public_key: string }>(tx)`
      DELETE FROM ssh_attested_keys WHERE user_id = ANY (${idsOf(users)}::uuid[]) RETURNING public_key`;
    return deleted.length === 0 ? {} : { ssh_keys: deleted.length };
  }

  /** Counts the proofs of a user. */
  async count(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const [row] = await sql<{ keys: number }>(tx)`
      SELECT count(*)::int AS keys FROM ssh_attested_keys WHERE user_id = ${id}`;
    return { ssh_keys: row?.keys ?? 0 };
  }
}
