import { Injectable } from '@nestjs/common';
import {
  EVERY_SCOPE,
  type LockedUser,
  type Revocable,
  type RevocationCause,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The certificates that one statement revokes: few enough that it ends long before its time limit. */
const BATCH = 5000;

/** Revokes certificates. Their rows remain after the user is deleted, so that the revocation list has them. */
@Injectable()
export class CertificateRevocation implements Revocable {
  readonly revocationOrder = 20;
  readonly revocationScopes = EVERY_SCOPE;

  /**
   * Revokes the certificates of users without an organization under a domain that an organization now owns. Returns their number.
   */
  async revokeOfOutsiders(
    tx: EntityManager,
    domain: string,
    { reason, revokedBy }: RevocationCause,
  ): Promise<number> {
    const revoked = await sql<{ serial: string }>(tx)`
      UPDATE ssh_certificates c
      SET revoked_at = now(), revoke_reason = ${reason}, revoked_by = ${revokedBy}
      FROM users u
      WHERE u.id = c.user_id AND u.org_id IS NULL AND split_part(u.email, '@', -1) = ${domain}
        AND c.revoked_at IS NULL AND c.valid_before > now()
      RETURNING c.serial`;
    return revoked.length;
  }

  /**
   * Revokes every certificate of a user that is not revoked yet, expired ones too; returns their number. It goes in batches by
   * serial, so that no number of certificates makes a statement exceed its time limit. The caller holds the row of the user:
   * nothing is issued meanwhile.
   */
  async revoke(
    tx: EntityManager,
    { id }: LockedUser,
    { reason, revokedBy }: RevocationCause,
  ): Promise<RevokedCounts> {
    let certificates = 0;
    let after = '-1';
    for (;;) {
      // Certificates that another transaction revokes meanwhile do not count, so that a short batch is the last one.
      const batch = await sql<{ serial: string }>(tx)`
        UPDATE ssh_certificates
        SET revoked_at = now(), revoke_reason = ${reason}, revoked_by = ${revokedBy}
        WHERE serial IN (
          SELECT serial FROM ssh_certificates
          WHERE user_id = ${id} AND revoked_at IS NULL AND serial > ${after}::bigint
          ORDER BY serial LIMIT ${BATCH} FOR UPDATE
        )
        RETURNING serial`;
      certificates += batch.length;
      if (batch.length < BATCH) return { certificates };
      after = String(batch.reduce((most, { serial }) => Math.max(most, Number(serial)), 0));
    }
  }
}
