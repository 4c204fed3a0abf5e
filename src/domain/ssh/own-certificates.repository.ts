import { isInRevokedRange } from './serials/revoked-ranges.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** A certificate that was revoked at the request of its own user. */
export interface RevokedOwnCertificate {
  readonly serial: string;
  readonly keyId: string;
  readonly revokedAt: Date;
}

/**
 * The number of newest certificates of a user among which those that hosts still accept are
 * counted, so that the query stays cheap.
 */
const MOST_COUNTED = 1000;

/**
 * Revokes one certificate of a user, at the user's request, if it is neither expired nor revoked.
 * One statement decides, so that of several requests at once exactly one revokes it.
 *
 * @returns the certificate; undefined if the user has no such certificate
 */
export async function revokeOwnCertificate(
  tx: EntityManager,
  userId: string,
  serial: string,
): Promise<RevokedOwnCertificate | undefined> {
  const [revoked] = await sql<RevokedOwnCertificate>(tx)`
    UPDATE ssh_certificates
    SET revoked_at = now(), revoke_reason = 'revoked by its user', revoked_by = ${userId}::text
    WHERE serial = ${serial}::bigint AND user_id = ${userId} AND revoked_at IS NULL AND valid_before > now()
    RETURNING serial::text, key_id AS "keyId", revoked_at AS "revokedAt"`;
  return revoked;
}

/**
 * Counts the certificates of a user that are neither expired nor revoked, among the newest {@link
 * MOST_COUNTED}.
 */
export async function countOwnCertificates(tx: EntityManager, userId: string): Promise<number> {
  const [row] = await sql<{ n: number }>(tx)`
    SELECT count(*)::int AS n
    FROM (SELECT serial, valid_before FROM ssh_certificates
          WHERE user_id = ${userId} AND revoked_at IS NULL ORDER BY serial DESC LIMIT ${MOST_COUNTED}) newest
    WHERE valid_before > now() AND NOT ${isInRevokedRange(fragment`serial`)}`;
  return row?.n ?? 0;
}
