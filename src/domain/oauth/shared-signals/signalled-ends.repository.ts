import {
  EVERY_SCOPE,
  idsOf,
  type EndedBatch,
  type LockedUser,
  type Revocable,
  type RevocationCause,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { REVOCATION_ORDER } from '#domain/access-revocation/revocation-order.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { isUuid } from '#platform/text/single-line.js';

const NOTHING: RevokedCounts = {};

/** The reason that the event `stream-updated` states after the database has lost commits. */
const LOST =
  'The database of the transmitter was restored or lost its last changes. Events may be lost or told twice.';

/**
 * Queues security events if the access of a user ends, or if a security key is removed. Database
 * triggers queue further events when sessions end. They read the cause and the author of the end,
 * which this class stores in the transaction. So this class runs before any session ends.
 */
export class SignalledEnds implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.signals;
  readonly revocationScopes = EVERY_SCOPE;

  /**
   * Queues an event `session-revoked` about each user, in each stream of an application that got a
   * grant of the user.
   */
  async revoke(
    tx: EntityManager,
    users: readonly LockedUser[],
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    await sql(
      tx,
    )`SELECT end_signals(${causeOf(users, cause)}::jsonb, ${idsOf(users)}::uuid[])::text`;
    return NOTHING;
  }

  /** Counts nothing, because an event gives no access. */
  async count(): Promise<RevokedCounts> {
    return NOTHING;
  }

  /**
   * Queues an event for each application that got a grant in a session that was opened with one
   * security key of a user.
   */
  async revokeOfKey(
    tx: EntityManager,
    user: LockedUser,
    keyId: string,
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    await sql(tx)`
      SELECT end_signals(${causeOf([user], cause)}::jsonb, ${[user.id]}::uuid[], ${keyId}::uuid)::text`;
    return NOTHING;
  }

  /**
   * Queues an event for each stream. The event says that events may be lost, because a failover of
   * the database has lost commits.
   */
  async revokeOnRecord(tx: EntityManager): Promise<EndedBatch> {
    await sql(tx)`SELECT announce_lost_signals(${LOST}::text)::text`;
    return { counts: NOTHING, next: undefined };
  }
}

/**
 * Stores the cause of an end of access for the rest of a transaction. The triggers that queue
 * events for ended sessions read it.
 */
export async function noteCause(tx: EntityManager, cause: RevocationCause): Promise<void> {
  await sql(tx)`SELECT end_signals(${causeOf([], cause)}::jsonb, '{}')::text`;
}

/** Returns the cause of the end of access as the JSON members of a CAEP event (CAEP §2). */
function causeOf(users: readonly LockedUser[], { reason, revokedBy }: RevocationCause): string {
  return JSON.stringify({
    initiating_entity: initiatorOf(users, revokedBy),
    reason_admin: { en: reason === '' ? 'The access was ended.' : reason },
  });
}

/**
 * Returns the kind of the author who ended the access, in the words of CAEP §2: `admin`, `user`,
 * `policy` or `system`.
 */
function initiatorOf(users: readonly LockedUser[], revokedBy: string): string {
  if (users.length === 1 && users[0]?.id === revokedBy) return 'user';
  if (isUuid(revokedBy) || ADMINS.has(revokedBy)) return 'admin';
  return POLICIES.has(revokedBy) ? 'policy' : 'system';
}

const ADMINS: ReadonlySet<string> = new Set(['scim', 'operator']);
const POLICIES: ReadonlySet<string> = new Set(['organization', 'dns', 'settings', 'upstream']);
