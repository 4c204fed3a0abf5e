import {
  EVERY_SCOPE,
  idsOf,
  type LockedUser,
  type Revocable,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { REVOCATION_ORDER } from '#domain/access-revocation/revocation-order.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { SIGN_IN_DAYS } from './sign-ins.repository.js';

/**
 * The most sessions of one person at one client for which notices are queued; the newest ones are
 * chosen.
 */
const MOST_SIDS = 20;

/**
 * The most people about which one statement queues notices. The number is low, because each person
 * may have signed in to many applications.
 */
const BATCH = 50;

const NOTHING: RevokedCounts = {};

/**
 * Queues logout notices to applications if the access of a user ends, or if a security key is
 * removed. This class runs before the sessions end. The database trigger on ended sessions then
 * skips the notices that the same transaction has queued.
 */
export class EndedAccounts implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.logoutNotices;
  readonly revocationScopes = EVERY_SCOPE;
  /**
   * Null, because nothing is to be done here if a failover of the database has lost commits. All
   * sessions end then, and a database trigger queues the notices of each ended session.
   */
  readonly revokeOnRecord = null;

  /**
   * Queues one notice for each session in which a client got a grant of one of the users. It also
   * queues a notice that names the user and no session, unless the client accepts only notices that
   * name a session.
   */
  async revoke(tx: EntityManager, users: readonly LockedUser[]): Promise<RevokedCounts> {
    const ids = idsOf(users);
    const alone = fragment`
      UNION ALL SELECT NULL::uuid
      WHERE c.metadata -> 'backchannel_logout_session_required' IS DISTINCT FROM 'true'`;
    for (let from = 0; from < ids.length; from += BATCH) {
      const of = fragment`r.user_id = ANY (${ids.slice(from, from + BATCH)}::uuid[])`;
      await queueNotices(tx, of, alone);
    }
    return NOTHING;
  }

  /** Counts nothing, because a notice gives no access. */
  async count(): Promise<RevokedCounts> {
    return NOTHING;
  }

  /**
   * Queues one notice for each session that was opened with one security key of a user. Expired
   * sessions are included, because an application may keep its own session for longer.
   */
  async revokeOfKey(tx: EntityManager, { id }: LockedUser, keyId: string): Promise<RevokedCounts> {
    await queueNotices(tx, fragment`r.user_id = ${id} AND r.session_key = ${keyId}`, fragment``);
    return NOTHING;
  }
}

/**
 * Queues notices to the clients that registered a URL for logout tokens. `created_at` is the time
 * of the statement and not of the transaction, because the user is locked by then. So every later
 * sign-in is newer than the notice, and the notice does not end its session.
 *
 * @param of a condition on the sign-in `r`
 * @param alone the SQL that adds a notice that names no session; empty if there is none
 */
async function queueNotices(tx: EntityManager, of: SqlFragment, alone: SqlFragment): Promise<void> {
  await sql(tx)`
    INSERT INTO logout_notices (client_id, self_registered, tenant_id, user_id, sid, created_at)
    SELECT c.id, c.kind = 'dynamic', coalesce(c.org_id, c.owner_id), s.user_id, x.sid, clock_timestamp()
    FROM (
      SELECT r.user_id, r.client_id, (array_agg(r.sid ORDER BY r.last_at DESC, r.sid))[1:${MOST_SIDS}::int] AS sids
      FROM client_sign_ins r WHERE ${of} AND r.last_at > now() - make_interval(days => ${SIGN_IN_DAYS})
      GROUP BY r.user_id, r.client_id
    ) s
    JOIN oauth_clients c ON c.id = s.client_id
    CROSS JOIN LATERAL (SELECT unnest(s.sids) AS sid ${alone}) x
    WHERE c.metadata ? 'backchannel_logout_uri'
    ORDER BY s.user_id, c.id`;
}
