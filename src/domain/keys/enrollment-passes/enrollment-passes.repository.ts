import {
  BY_DELETED_ROW,
  idsOf,
  ON_RECORD_BATCH,
  withoutZeros,
  type EndedBatch,
  type LockedUser,
  type Revocable,
  type RevocationScope,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { REVOCATION_ORDER } from '#domain/access-revocation/revocation-order.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { RECORDED, recordAudit } from '#domain/audit/audit.repository.js';
import { lockUsers } from '#domain/access/issuance/lock-order.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { PASS_HOURS, type DemandedPass, type PassFacts } from './enrollment-pass.js';

/** The re-enrollment pass that a user sends in an enrollment, if any. */
export interface PresentedPass {
  readonly userId: string;
  readonly orgId: string | null;
  /** The SHA-256 of the pass; undefined if the user sends none. */
  readonly hash: Buffer | undefined;
}

interface Row {
  created_by: string | null;
  created_at: Date;
  expires_at: Date;
  withdrawn: boolean;
  expired: boolean;
}

/**
 * The SQL condition that a pass was not withdrawn, so that the hash of its secret is still there,
 * and has not expired.
 */
const IS_VALID = fragment`hash IS NOT NULL AND expires_at > now()`;

/**
 * The re-enrollment passes of users, at most one row for each user. While a user has a row, the
 * user's next enrollment needs a pass, even if the secret in the row is not valid any more. The
 * secret becomes invalid if the account is deactivated or its credentials are revoked. The row is
 * deleted if the pass is used, or if an admin decides that the user needs none.
 */
export class EnrollmentPassesRepository implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.enrollmentPasses;
  /**
   * The events at which {@link revoke} ends passes. The event `account-deleted` is not among them,
   * because a foreign key deletes the pass together with the user.
   */
  readonly revocationScopes: ReadonlySet<RevocationScope> = new Set([
    'account-deactivated',
    'credentials-revoked',
  ]);
  readonly endedByForeignKey = BY_DELETED_ROW;

  /**
   * Makes the pass of a user, and replaces an earlier one. The caller has locked the row of the
   * user.
   *
   * @param hash the SHA-256 of the secret
   * @param createdBy the id of the admin; null for the operator of the service
   * @returns the time at which the pass expires
   */
  async replace(
    tx: EntityManager,
    userId: string,
    hash: Buffer,
    createdBy: string | null,
  ): Promise<Date> {
    const [row] = await sql<{ expires_at: Date }>(tx)`
      INSERT INTO enrollment_passes (user_id, hash, created_by, expires_at)
      VALUES (${userId}, ${hash}, ${createdBy}, now() + make_interval(hours => ${PASS_HOURS}))
      ON CONFLICT (user_id) DO UPDATE
      SET hash = EXCLUDED.hash, created_by = EXCLUDED.created_by, created_at = now(), expires_at = EXCLUDED.expires_at
      RETURNING expires_at`;
    if (!row) throw new Error('INSERT returned no row');
    return row.expires_at;
  }

  /**
   * Finds the pass that the next enrollment of a user needs; undefined if no pass is needed. An
   * expired or withdrawn pass is returned, because the user then needs another one.
   */
  async find(tx: EntityManager, userId: string): Promise<DemandedPass | undefined> {
    const [row] = await sql<Row>(tx)`
      SELECT created_by, created_at, expires_at, hash IS NULL AS withdrawn, expires_at <= now() AS expired
      FROM enrollment_passes WHERE user_id = ${userId}`;
    return (
      row && {
        createdBy: row.created_by,
        createdAt: row.created_at,
        expiresAt: row.expires_at,
        isWithdrawn: row.withdrawn,
        isExpired: row.expired,
      }
    );
  }

  /**
   * Finds a member of an organization, and the pass that the next enrollment of the member needs.
   * Returns undefined if the organization has no such member.
   */
  async findOfMember(
    tx: EntityManager,
    orgId: string,
    memberId: string,
  ): Promise<{ readonly pass: DemandedPass | undefined } | undefined> {
    const found = await sql<{ id: string }>(tx)`
      SELECT id FROM users WHERE id = ${memberId} AND org_id = ${orgId}`;
    return found.length === 0 ? undefined : { pass: await this.find(tx, memberId) };
  }

  /**
   * Compares a pass that a user sends with the stored pass of the user, before the ceremony.
   * Nothing is locked or changed.
   */
  async compare(tx: EntityManager, { userId, hash }: PresentedPass): Promise<PassFacts> {
    const [row] = await sql<{ fits: boolean }>(tx)`
      SELECT coalesce(hash = ${hash ?? null}::bytea AND expires_at > now(), false) AS fits
      FROM enrollment_passes WHERE user_id = ${userId}`;
    return {
      isDemanded: row !== undefined,
      isPresented: hash !== undefined,
      fits: row?.fits ?? false,
    };
  }

  /**
   * Ends the secrets of the valid passes of some users. The result contains their number if it is
   * not zero.
   */
  async revoke(tx: EntityManager, users: readonly LockedUser[]): Promise<RevokedCounts> {
    const ended = await sql<{ user_id: string }>(tx)`
      UPDATE enrollment_passes SET hash = NULL
      WHERE user_id = ANY (${idsOf(users)}::uuid[]) AND ${IS_VALID}
      RETURNING user_id`;
    return ended.length === 0 ? {} : { enrollment_passes: ended.length };
  }

  /**
   * Ends the secrets of one batch of passes after the database has lost commits, because
   * withdrawals may be among them. Expired passes are included, because the clock of a restored
   * server may be behind. The rows stay, so that the users still need a pass.
   */
  async revokeOnRecord(tx: EntityManager): Promise<EndedBatch> {
    const found = await sql<{ user_id: string }>(tx)`
      SELECT user_id FROM enrollment_passes WHERE hash IS NOT NULL ORDER BY user_id LIMIT ${ON_RECORD_BATCH}`;
    const ids = found.map(({ user_id: id }) => id);
    await lockUsers(tx, ids);
    const ended = await sql<{ is_valid: boolean }>(tx)`
      UPDATE enrollment_passes p SET hash = NULL
      FROM (SELECT user_id, ${IS_VALID} AS is_valid FROM enrollment_passes WHERE user_id = ANY (${ids}::uuid[])) before
      WHERE p.user_id = before.user_id
      RETURNING before.is_valid`;
    const passes = ended.filter((pass) => pass.is_valid).length;
    return {
      counts: withoutZeros({ enrollment_passes: passes }),
      next: found.length < ON_RECORD_BATCH ? undefined : '',
    };
  }

  /**
   * Makes the next enrollment of a user need a re-enrollment pass, which only an admin or the
   * operator of the service can give. For that it adds a row without a secret. If the user has a
   * row already, that row stays as it is.
   */
  async demand(tx: EntityManager, userId: string): Promise<void> {
    await sql(tx)`
      INSERT INTO enrollment_passes (user_id, expires_at) VALUES (${userId}, now()) ON CONFLICT (user_id) DO NOTHING`;
  }

  /** Counts the valid re-enrollment passes of a user. */
  async count(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const [row] = await sql<{ passes: number }>(tx)`
      SELECT count(*)::int AS passes FROM enrollment_passes WHERE user_id = ${id} AND ${IS_VALID}`;
    return { enrollment_passes: row?.passes ?? 0 };
  }

  /**
   * Deletes the pass of a user with its row, so that the user's next enrollment needs no pass.
   * Returns false if the user has no row.
   */
  async lift(tx: EntityManager, userId: string): Promise<boolean> {
    const lifted = await sql<{ user_id: string }>(tx)`
      DELETE FROM enrollment_passes WHERE user_id = ${userId} RETURNING user_id`;
    return lifted.length === 1;
  }

  /** Ends the secret of the valid pass of one user. Returns false if there is no valid pass. */
  async withdraw(tx: EntityManager, userId: string): Promise<boolean> {
    const ended = await sql<{ user_id: string }>(tx)`
      UPDATE enrollment_passes SET hash = NULL
      WHERE user_id = ${userId} AND ${IS_VALID}
      RETURNING user_id`;
    return ended.length === 1;
  }
}

/**
 * Compares and consumes the pass of a user by one statement, which also records the use. So if
 * several requests send the same pass, only one succeeds. The caller has locked the row of the
 * user, and rolls the transaction back if the result refuses the enrollment.
 */
export async function consumePass(
  tx: EntityManager,
  { userId, orgId, hash }: PresentedPass,
  origin: AuditOrigin,
): Promise<PassFacts> {
  const used = fragment`jsonb_build_object('given_by', c.created_by, 'given_at', c.created_at)`;
  const record = {
    type: 'enrollment_pass_used',
    actorId: userId,
    subjectId: userId,
    orgId,
    origin,
    details: used,
  } as const;
  const [row] = await sql<{ demanded: boolean; consumed: boolean }>(tx)`
    WITH consumed AS (
      DELETE FROM enrollment_passes
      WHERE user_id = ${userId} AND hash = ${hash ?? null}::bytea AND expires_at > now()
      RETURNING created_by, created_at
    ), audited AS (${recordAudit(record, fragment`FROM consumed c`)})
    SELECT EXISTS (SELECT FROM enrollment_passes WHERE user_id = ${userId}) AS demanded,
           EXISTS (SELECT FROM consumed) AS consumed, ${RECORDED}`;
  return {
    isDemanded: row?.demanded ?? true,
    isPresented: hash !== undefined,
    fits: row?.consumed ?? false,
  };
}
