import { Logger } from '@nestjs/common';
import { lockUsers } from '#domain/access/issuance/lock-order.repository.js';
import {
  idsOf,
  ON_RECORD_BATCH,
  withoutZeros,
  type EndedBatch,
  type LockedUser,
  type Revocable,
  type RevocationCause,
  type RevocationScope,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { REVOCATION_ORDER } from '#domain/access-revocation/revocation-order.js';
import type { AuditLog } from '#domain/audit/audit.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { afterCommit } from '#platform/database/statements/after-commit.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { isUuid } from '#platform/text/single-line.js';

interface PausedReceiver {
  readonly id: string;
  readonly orgId: string;
  readonly name: string;
  readonly adminId: string;
}

const security = new Logger('security');

/**
 * Pauses the event receivers for which a former admin vouched last: the admin created the receiver,
 * set its URL or header, or resumed it. So no former admin still gets the audit log. A paused
 * receiver keeps its position in the audit log, and another admin can resume it. An audit event and
 * a log line name each receiver.
 */
export class EventReceiverRevocation implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.eventReceivers;
  /**
   * Every revocation event except a change of the user's e-mail address, after which the user is
   * still an admin.
   */
  readonly revocationScopes: ReadonlySet<RevocationScope> = new Set([
    'account-deleted',
    'account-deactivated',
    'credentials-revoked',
    'domain-lost',
    'provider-withdrawn',
    'admin-demoted',
  ]);

  constructor(private readonly auditLog: AuditLog) {}

  async revoke(
    tx: EntityManager,
    users: readonly LockedUser[],
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    const ofUsers = fragment`r.address_by = ANY (${idsOf(users)}::uuid[])`;
    return withoutZeros({ event_receivers: await this.#pause(tx, ofUsers, cause) });
  }

  /** Counts the enabled receivers for which a user vouched last. */
  async count(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const [row] = await sql<{ receivers: number }>(tx)`
      SELECT count(*)::int AS receivers FROM event_receivers r WHERE r.address_by = ${id} AND r.status = 'enabled'`;
    return withoutZeros({ event_receivers: row?.receivers ?? 0 });
  }

  /**
   * Pauses a batch of the receivers of all organizations, because a failover of the database has
   * lost commits. One of the lost commits may have removed an admin or changed a URL. The log could
   * then still be sent to a URL of a former admin.
   */
  async revokeOnRecord(tx: EntityManager, cause: RevocationCause): Promise<EndedBatch> {
    const found = await sql<{ id: string; adminId: string }>(tx)`
      SELECT r.id, r.address_by AS "adminId" FROM event_receivers r WHERE r.status = 'enabled'
      ORDER BY r.id LIMIT ${ON_RECORD_BATCH}`;
    await lockUsers(
      tx,
      found.map(({ adminId }) => adminId),
    );
    const ids = found.map(({ id }) => id);
    const paused = await this.#pause(tx, fragment`r.id = ANY (${ids}::uuid[])`, cause);
    return {
      counts: withoutZeros({ event_receivers: paused }),
      next: found.length < ON_RECORD_BATCH ? undefined : '',
    };
  }

  /**
   * Pauses the enabled receivers that meet a condition, and records this in the audit log. The
   * result of a request that is under way is then not recorded, because a sender records a result
   * only if `lease` has not changed.
   * @returns the number of paused receivers
   */
  async #pause(
    tx: EntityManager,
    condition: SqlFragment,
    { reason, revokedBy }: RevocationCause,
  ): Promise<number> {
    const paused = await sql<PausedReceiver>(tx)`
      UPDATE event_receivers r SET status = 'paused', lease = r.lease + 1
      WHERE ${condition} AND r.status = 'enabled'
      RETURNING r.id, r.org_id AS "orgId", r.name, r.address_by AS "adminId"`;
    for (const { id, orgId, name, adminId } of paused) {
      const change = { changed: ['status'], status: 'paused', reason, revoked_by: revokedBy };
      await this.auditLog.record(tx, {
        type: 'event_receiver_updated',
        actorId: isUuid(revokedBy) ? revokedBy : null,
        subjectId: adminId,
        orgId,
        origin: { requestId: newUuid(), ip: undefined, userAgent: undefined },
        details: { receiver_id: id, name, ...change },
      });
    }
    warn(tx, paused);
    return paused.length;
  }
}

/** Logs, once the transaction has committed, which receivers of which organization are paused. */
function warn(tx: EntityManager, receivers: readonly PausedReceiver[]): void {
  const ofOrganizations = Map.groupBy(receivers, ({ orgId }) => orgId);
  afterCommit(tx, () => {
    for (const [orgId, paused] of ofOrganizations) {
      const eventReceivers = paused.map(({ id, name, adminId }) => ({ id, name, adminId }));
      security.warn(
        { orgId, eventReceivers },
        'Event receivers are paused, because the admin who set their address lost access. Another admin can resume them',
      );
    }
  });
}
