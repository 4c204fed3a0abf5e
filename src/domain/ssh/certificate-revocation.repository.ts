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
import {
  fittingTouchSql,
  hasConditionsSql,
  outlivesTouch,
} from '#domain/access/reach/reach.repository.js';
import { isInRevokedRange } from './serials/revoked-ranges.repository.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The most certificates that one statement revokes, so that it ends long before its time limit. */
const BATCH = 5000;

/**
 * The number of rows among which one statement looks for valid certificates. It may be large,
 * because most of the rows are expired certificates.
 */
const WINDOW = 50_000;

/**
 * The most certificates of each user that a statement for many users revokes. Users with more get
 * statements of their own.
 */
const FIRST = 10;

/**
 * The number of newest certificates of a user among which the valid ones are counted. It is larger
 * than the number of valid certificates that a user has, and limits the cost of the query.
 */
const MOST_COUNTED = 10_000;

/**
 * The SQL condition that a certificate has not expired, and that its serial is in no revoked range.
 * Only such certificates count as revoked, because hosts refuse all others anyway.
 */
const IS_VALID = fragment`(valid_before > now() AND NOT ${isInRevokedRange(fragment`serial`)})`;

/** The lowest possible id of a group of hosts, to start a list before every other id. */
const LOWEST_ID = '00000000-0000-0000-0000-000000000000';

/**
 * Returns the CTE `counting`: the certificates that would not have got the principals of a group of
 * hosts until their end without the touches of one security key, each with the id of this key. If
 * the session has ended, its touches are not known, so the certificate counts for every key to be
 * safe. Thousands of certificates share a few sessions and conditions, so the touches of a session
 * are searched once for equal conditions.
 *
 * @param held the certificates, each with a group of hosts: rows with the columns `target_id`,
 *   `serial`, `session_id` and `valid_before`
 * @param keys the ids of the security keys, in a column `id`
 */
function countingTouches(held: SqlFragment, keys: SqlFragment): SqlFragment {
  const rule = fragment`concat_ws(' ', t.touch_within_seconds, t.models, t.user_verification)`;
  const touch = fittingTouchSql(fragment`r`, fragment`(s.touches - k.id::text)`);
  return fragment`
    held AS MATERIALIZED (
      SELECT DISTINCT g.serial, g.session_id, g.valid_before, t.touch_within_seconds, t.models, t.user_verification, ${rule} AS rule
      FROM ${held} g JOIN access_targets t ON t.id = g.target_id
      WHERE ${hasConditionsSql(fragment`t`)}
    ),
    touched AS MATERIALIZED (
      SELECT r.session_id, r.rule, k.id AS key_id, ${touch} AS touch
      FROM (SELECT DISTINCT session_id, touch_within_seconds, models, user_verification, rule FROM held) r
      CROSS JOIN ${keys} k LEFT JOIN sessions s ON s.id = r.session_id
      WHERE s.id IS NULL OR s.touches ? k.id::text
    ),
    counting AS MATERIALIZED (
      SELECT DISTINCT h.serial, c.key_id
      FROM held h JOIN touched c ON c.session_id = h.session_id AND c.rule = h.rule
      WHERE c.touch IS NULL OR ${outlivesTouch(fragment`h`, fragment`c.touch`, fragment`h.valid_before`)}
    )`;
}

interface Revoked {
  serial: string;
  is_valid: boolean;
}

/** Counts the revoked certificates that were still valid. */
function validOf(revoked: readonly Revoked[]): number {
  return revoked.filter((certificate) => certificate.is_valid).length;
}

/**
 * Revokes the certificates of users. The rows stay after a user is deleted, because the revocation
 * list for hosts is made from them.
 */
export class CertificateRevocation implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.sshCertificates;
  readonly revocationScopes = EVERY_SCOPE;

  /**
   * Revokes the certificates of users without an organization, if their e-mail address is in a
   * domain that an organization now owns. Returns their number.
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
   * Revokes valid certificates of an organization that loses a domain: those with a user name as a
   * principal. The user names may now belong to the new owner of the domain. Users with an e-mail
   * address in another domain can get another certificate at once.
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
   * returns the number of the valid ones. It works in batches by serial, so that no statement
   * exceeds its time limit. The caller has locked the rows of the users, so that nothing is issued
   * meanwhile.
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
   * Revokes the certificates that were issued in sessions that one security key opened, even if the
   * session has ended. A valid certificate whose security key is not recorded is also revoked, to
   * be safe. So is a certificate of another session, if only a touch of this key met the conditions
   * of one of its groups of hosts.
   */
  async revokeOfKey(
    tx: EntityManager,
    { id }: LockedUser,
    keyId: string,
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    const ofSessions = await this.#revoke(tx, id, keyId, cause);
    return { certificates: ofSessions + (await this.#revokeTouched(tx, id, keyId, cause)) };
  }

  /**
   * Revokes the valid certificates of all users after the database has lost commits, because
   * revocations may be among them. Each call revokes one batch, and the batches follow the order of
   * the serials. It waits for rows that another transaction is revoking. It does not lock the
   * users, because no other credential depends on a certificate.
   *
   * @param from the serial after which the batch begins; empty for the first batch
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
    // If the batch is full, its range of serials may contain more valid certificates, so the next
    // batch begins at the same serial again.
    const isWindowDone = revoked.length < ON_RECORD_BATCH;
    const next = isWindowDone ? window.last : from || '0';
    const isLast = isWindowDone && window.rows < WINDOW;
    return {
      counts: withoutZeros({ certificates: revoked.length }),
      next: isLast ? undefined : next,
    };
  }

  /** Counts the valid certificates among the newest {@link MOST_COUNTED} of a user. */
  async count(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const [row] = await sql<{ certificates: number }>(tx)`
      SELECT count(*)::int AS certificates
      FROM (SELECT serial, valid_before FROM ssh_certificates
            WHERE user_id = ${id} AND revoked_at IS NULL ORDER BY serial DESC LIMIT ${MOST_COUNTED}) newest
      WHERE ${IS_VALID}`;
    return { certificates: row?.certificates ?? 0 };
  }

  /**
   * Counts the valid certificates of a user by the security key with whose removal they end: the
   * key of their session, or one whose touch the conditions of a group of hosts count.
   */
  async countByKey(tx: EntityManager, userId: string): Promise<CountOfKey[]> {
    // `IS TRUE` makes PostgreSQL look each serial up in a hash table. Without statistics it would
    // compare each certificate of the user with all valid ones.
    const held = fragment`(
      SELECT * FROM ssh_certificate_groups WHERE user_id = ${userId} AND (serial IN (SELECT serial FROM valid)) IS TRUE)`;
    const keys = fragment`(SELECT id FROM authenticators WHERE user_id = ${userId})`;
    const rows = await sql<{ key_id: string; certificates: number }>(tx)`
      WITH valid AS MATERIALIZED (
        SELECT serial, authenticator_id
        FROM (SELECT serial, authenticator_id, valid_before FROM ssh_certificates
              WHERE user_id = ${userId} AND revoked_at IS NULL ORDER BY serial DESC LIMIT ${MOST_COUNTED}) newest
        WHERE ${IS_VALID}
      ), ${countingTouches(held, keys)}
      SELECT key_id, count(*)::int AS certificates
      FROM (
        SELECT authenticator_id AS key_id, serial FROM valid WHERE authenticator_id IS NOT NULL
        UNION
        SELECT key_id, serial FROM counting
      ) c
      GROUP BY key_id`;
    return rows.map(({ key_id: keyId, certificates }) => ({ keyId, count: { certificates } }));
  }

  /**
   * Revokes the first {@link FIRST} certificates of each of many users in one statement. Most users
   * have no more, so one statement for all users is faster than one for each.
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
   * Returns the ids of the users with a certificate that is not revoked yet. For a single user, the
   * id is returned without a look-up, because the look-up would save nothing.
   */
  async #withCertificates(tx: EntityManager, users: readonly LockedUser[]): Promise<string[]> {
    if (users.length === 1) return idsOf(users);
    const rows = await sql<{ id: string }>(tx)`
      SELECT u.id FROM unnest(${idsOf(users)}::uuid[]) AS u (id)
      WHERE EXISTS (SELECT FROM ssh_certificates c WHERE c.user_id = u.id AND c.revoked_at IS NULL)`;
    return rows.map(({ id }) => id);
  }

  /**
   * Revokes the certificates of a user in batches by serial, and returns the number of those that
   * were still valid. With `keyId`, it revokes only the certificates of that security key, and
   * valid certificates whose security key is not recorded.
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
      // PostgreSQL leaves out a certificate that another transaction has just revoked, and takes
      // the next one instead. So a batch that is not full is the last one.
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

  /**
   * Revokes the certificates of a user whose groups of hosts have conditions that only a touch of
   * one security key met. It looks at them page by page, so that no statement exceeds its time
   * limit. Returns the number of those that were still valid.
   */
  async #revokeTouched(
    tx: EntityManager,
    userId: string,
    keyId: string,
    { reason, revokedBy }: RevocationCause,
  ): Promise<number> {
    let certificates = 0;
    let last = { target_id: LOWEST_ID, serial: '0' };
    for (;;) {
      const page = await sql<{ target_id: string; serial: string; ends: boolean }>(tx)`
        WITH page AS MATERIALIZED (
          SELECT target_id, serial, session_id, valid_before FROM ssh_certificate_groups
          WHERE user_id = ${userId} AND (target_id, serial) > (${last.target_id}::uuid, ${last.serial}::bigint)
          ORDER BY target_id, serial LIMIT ${BATCH}
        ), ${countingTouches(fragment`page`, fragment`(SELECT ${keyId}::uuid AS id)`)}
        SELECT target_id, serial, serial IN (SELECT serial FROM counting) AS ends
        FROM page ORDER BY target_id, serial`;
      const ending = page.filter(({ ends }) => ends).map(({ serial }) => serial);
      const revoked = await sql<Revoked>(tx)`
        UPDATE ssh_certificates SET revoked_at = now(), revoke_reason = ${reason}, revoked_by = ${revokedBy}
        WHERE serial = ANY (${ending}::bigint[]) AND revoked_at IS NULL
        RETURNING serial, ${IS_VALID} AS is_valid`;
      certificates += validOf(revoked);
      const next = page.at(-1);
      if (!next || page.length < BATCH) return certificates;
      last = next;
    }
  }
}
