import {
  EVERY_SCOPE,
  idsOf,
  ON_RECORD_BATCH,
  withoutZeros,
  type CountOfKey,
  type DomainOfOrganization,
  type EndedBatch,
  type LockedUser,
  type Revocable,
  type RevocationCause,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { REVOCATION_ORDER } from '#domain/access-revocation/revocation-order.js';
import { isInRevokedRange } from './serials/revoked-ranges.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The number of certificates that one statement revokes. It is small enough for the statement to
 * end long before its time limit.
 */
const BATCH = 5000;

/**
 * The number of rows in which one statement looks for valid certificates. Most of the rows have
 * expired.
 */
const WINDOW = 50_000;

/** The number of certificates for each user that one statement for many users revokes. */
const FIRST = 10;

/**
 * The newest certificates of a user that are counted: more than a user has at once, and a bound for
 * the query.
 */
const MOST_COUNTED = 10_000;

/** The condition that a revoked certificate was still valid. Only such certificates are counted. */
const IS_VALID = fragment`(valid_before > now() AND NOT ${isInRevokedRange(fragment`serial`)})`;

interface Revoked {
  serial: string;
  is_valid: boolean;
}

/** Returns the number of certificates that were valid. */
function validOf(revoked: readonly Revoked[]): number {
  return revoked.filter((certificate) => certificate.is_valid).length;
}

/**
 * Revokes certificates. Their rows remain after the user is deleted, so that the revocation list
 * has them.
 */
export class CertificateRevocation implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.sshCertificates;
  readonly revocationScopes = EVERY_SCOPE;

  /**
   * Revokes the certificates of users without an organization under a domain that an organization
   * now owns. Returns their number.
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
   * Revokes the valid certificates with a user name of an organization that loses a domain, since
   * the names may belong to the owner of the domain. Users with an address in another domain get
   * another certificate at once.
   */
  async revokeOfDomain(
    tx: EntityManager,
    { orgId }: DomainOfOrganization,
    { reason, revokedBy }: RevocationCause,
  ): Promise<RevokedCounts> {
    const revoked = await sql<{ serial: string }>(tx)`
      UPDATE ssh_certificates c
      SET revoked_at = now(), revoke_reason = ${reason}, revoked_by = ${revokedBy}
      FROM users u
      WHERE u.id = c.user_id AND u.org_id = ${orgId} AND c.revoked_at IS NULL AND c.valid_before > now()
        AND EXISTS (SELECT FROM unnest(c.principals) AS name WHERE position('@' IN name) = 0)
      RETURNING c.serial`;
    return { certificates: revoked.length };
  }

  /**
   * Revokes every certificate of some users that is not revoked yet, even if it has expired, and
   * returns the number of the valid ones. It goes in batches by serial, so that no number of
   * certificates makes a statement exceed its time limit. The caller holds the rows of the users,
   * so that nothing is issued meanwhile.
   */
  async revoke(
    tx: EntityManager,
    users: readonly LockedUser[],
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    let certificates = users.length > 1 ? await this.#revokeFirst(tx, users, cause) : 0;
    for (const id of await this.#withCertificates(tx, users)) {
      certificates += await this.#revoke(tx, id, undefined, cause);
    }
    return { certificates };
  }

  /**
   * Revokes the certificates that were issued in the sessions of one key, even if a session has
   * ended. If a valid certificate has no key on record, it is revoked, too.
   */
  async revokeOfKey(
    tx: EntityManager,
    { id }: LockedUser,
    keyId: string,
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    return { certificates: await this.#revoke(tx, id, keyId, cause) };
  }

  /**
   * Revokes the valid certificates of all users, one window of serials after another. It waits for
   * rows that another transaction is revoking. It does not lock the users, because no credential is
   * issued by means of a certificate.
   */
  async revokeOnRecord(
    tx: EntityManager,
    { reason, revokedBy }: RevocationCause,
    from: string,
  ): Promise<EndedBatch> {
    const [window] = await sql<{ last: string | null; rows: number }>(tx)`
      SELECT max(serial)::text AS last, count(*)::int AS rows
      FROM (SELECT serial FROM ssh_certificates WHERE serial > ${from || '0'}::bigint ORDER BY serial LIMIT ${WINDOW}) w`;
    if (!window?.last) return { counts: {}, next: undefined };
    const revoked = await sql<{ serial: string }>(tx)`
      UPDATE ssh_certificates
      SET revoked_at = now(), revoke_reason = ${reason}, revoked_by = ${revokedBy}
      WHERE serial IN (
        SELECT serial FROM ssh_certificates
        WHERE serial > ${from || '0'}::bigint AND serial <= ${window.last}::bigint AND revoked_at IS NULL AND ${IS_VALID}
        ORDER BY serial LIMIT ${ON_RECORD_BATCH} FOR UPDATE
      )
      RETURNING serial`;
    // A full batch may have left rows of its window.
    const isWindowDone = revoked.length < ON_RECORD_BATCH;
    const next = isWindowDone ? window.last : from || '0';
    const isLast = isWindowDone && window.rows < WINDOW;
    return {
      counts: withoutZeros({ certificates: revoked.length }),
      next: isLast ? undefined : next,
    };
  }

  /** Counts the valid certificates of a user. */
  async count(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const [row] = await sql<{ certificates: number }>(tx)`
      SELECT count(*)::int AS certificates
      FROM (SELECT serial, valid_before FROM ssh_certificates
            WHERE user_id = ${id} AND revoked_at IS NULL ORDER BY serial DESC LIMIT ${MOST_COUNTED}) newest
      WHERE ${IS_VALID}`;
    return { certificates: row?.certificates ?? 0 };
  }

  /** Counts the valid certificates of a user by the key in whose sessions they were issued. */
  async countByKey(tx: EntityManager, userId: string): Promise<CountOfKey[]> {
    const rows = await sql<{ key_id: string; certificates: number }>(tx)`
      SELECT authenticator_id AS key_id, count(*)::int AS certificates
      FROM (SELECT serial, authenticator_id, valid_before FROM ssh_certificates
            WHERE user_id = ${userId} AND revoked_at IS NULL ORDER BY serial DESC LIMIT ${MOST_COUNTED}) newest
      WHERE ${IS_VALID} AND authenticator_id IS NOT NULL
      GROUP BY authenticator_id`;
    return rows.map(({ key_id: keyId, certificates }) => ({ keyId, count: { certificates } }));
  }

  /**
   * Revokes the first certificates of each of many users in one statement. For most users these are
   * all.
   */
  async #revokeFirst(
    tx: EntityManager,
    users: readonly LockedUser[],
    { reason, revokedBy }: RevocationCause,
  ): Promise<number> {
    const revoked = await sql<Revoked>(tx)`
      UPDATE ssh_certificates
      SET revoked_at = now(), revoke_reason = ${reason}, revoked_by = ${revokedBy}
      WHERE revoked_at IS NULL AND serial IN (
        SELECT c.serial FROM unnest(${idsOf(users)}::uuid[]) AS u (id)
        CROSS JOIN LATERAL (
          SELECT serial FROM ssh_certificates
          WHERE user_id = u.id AND revoked_at IS NULL ORDER BY serial LIMIT ${FIRST}
        ) c)
      RETURNING serial, ${IS_VALID} AS is_valid`;
    return validOf(revoked);
  }

  /**
   * Returns the ids of the users with a certificate that is not revoked yet. A single user is
   * returned without a look-up.
   */
  async #withCertificates(tx: EntityManager, users: readonly LockedUser[]): Promise<string[]> {
    if (users.length === 1) return idsOf(users);
    const rows = await sql<{ id: string }>(tx)`
      SELECT u.id FROM unnest(${idsOf(users)}::uuid[]) AS u (id)
      WHERE EXISTS (SELECT FROM ssh_certificates c WHERE c.user_id = u.id AND c.revoked_at IS NULL)`;
    return rows.map(({ id }) => id);
  }

  /**
   * Revokes the certificates of a user in batches by serial. With `keyId`, it revokes those of that
   * key, and valid ones without a key on record. Returns the number that were valid.
   */
  async #revoke(
    tx: EntityManager,
    id: string,
    keyId: string | undefined,
    { reason, revokedBy }: RevocationCause,
  ): Promise<number> {
    let certificates = 0;
    let after = '-1';
    for (;;) {
      // Certificates that another transaction revokes meanwhile do not count, so that a short batch
      // is the last one.
      const batch = await sql<Revoked>(tx)`
        UPDATE ssh_certificates
        SET revoked_at = now(), revoke_reason = ${reason}, revoked_by = ${revokedBy}
        WHERE serial IN (
          SELECT serial FROM ssh_certificates
          WHERE user_id = ${id} AND revoked_at IS NULL AND serial > ${after}::bigint
            AND (${keyId ?? null}::uuid IS NULL OR authenticator_id = ${keyId ?? null}::uuid
                 OR (authenticator_id IS NULL AND valid_before > now()))
          ORDER BY serial LIMIT ${BATCH} FOR UPDATE
        )
        RETURNING serial, ${IS_VALID} AS is_valid`;
      certificates += validOf(batch);
      if (batch.length < BATCH) return certificates;
      after = String(batch.reduce((most, { serial }) => Math.max(most, Number(serial)), 0));
    }
  }
}
