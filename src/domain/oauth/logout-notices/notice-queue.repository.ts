import { recordAudit } from '#domain/audit/audit.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { countedNotice, tookNotice } from '../notice-figures/notice-counts.repository.js';
import type { NoticeQueue } from '../notice-figures/notice-figures.repository.js';
import type { DueClient } from '../notice-sending/fair-turns.js';
import { LEASE, type Failure, type TakenRow } from '../notice-sending/notice-sender.js';

/** The name of logout notices in statistics and logs. */
export const KIND = 'back-channel-logout';

/** The queue of logout notices, for the statistics of waiting notices. */
export const LOGOUT_QUEUE: NoticeQueue = {
  kind: KIND,
  waiting: fragment`
    SELECT client_id, self_registered, tenant_id, created_at FROM logout_notices WHERE dead_at IS NULL`,
};

/**
 * A notice that one sender has reserved for itself, with the present registration of its client.
 */
export interface TakenNotice extends TakenRow {
  readonly tenantId: string;
  readonly selfRegistered: boolean;
  readonly userId: string;
  readonly sid: string | null;
  /**
   * The number of this reservation. A sender records its result only if no later sender has
   * reserved the notice.
   */
  readonly lease: number;
  /**
   * True if the notice names no session, and the user has signed in to the client again since the
   * notice was queued. The logout token would then end the new session, so it is not sent.
   */
  readonly isOvertaken: boolean;
  /** The client metadata (RFC 7591 §2); null if the client does not exist any more. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

interface Row {
  id: string;
  client_id: string;
  tenant_id: string;
  self_registered: boolean;
  user_id: string;
  sid: string | null;
  lease: number;
  tries: number;
  refusals: number;
  left_ms: number;
  is_overtaken: boolean;
  metadata: Record<string, unknown> | null;
}

/**
 * Returns the tenant of a notice. The tenants take turns, so that no tenant delays the notices of
 * others: see {@link DueClient.tenantId}.
 */
function tenantOf(notice: SqlFragment): SqlFragment {
  return fragment`CASE WHEN ${notice}.self_registered THEN ${notice}.user_id ELSE coalesce(${notice}.tenant_id, ${notice}.user_id) END`;
}

const TENANT = tenantOf(fragment`d`);
const TENANT_OF_TAKEN = tenantOf(fragment`t`);

/**
 * Lists the clients with a notice that can be sent now. If there is none, the statement reads one
 * index entry. Otherwise it reads the earliest notice of each client, and not every notice.
 */
export async function listDueClients(
  tx: EntityManager,
  selfRegistered: boolean,
): Promise<DueClient[]> {
  const rows = await sql<{ client_id: string; tenant_id: string; since: number; took: boolean }>(
    tx,
  )`
    SELECT d.client_id, ${TENANT} AS tenant_id, extract(epoch FROM d.next_attempt_at)::float8 * 1000 AS since,
           ${tookNotice(KIND, fragment`d.client_id`)} AS took
    FROM waiting_clients(${selfRegistered}) d WHERE d.next_attempt_at <= now()`;
  return rows.map(({ client_id, tenant_id, since, took }) => ({
    clientId: client_id,
    tenantId: tenant_id,
    since,
    hasTaken: took,
  }));
}

/**
 * Reserves notices that can be sent now, until the lease ends. No two senders reserve the same
 * notice. A sender skips rows that another one has locked, and rows whose lease has not ended. A
 * database server that is not yet confirmed after a failover gives no notices, because each becomes
 * a signed logout token.
 */
export async function takeNotices(
  tx: EntityManager,
  counts: ReadonlyMap<string, number>,
  selfRegistered: boolean,
): Promise<TakenNotice[]> {
  const rows = await sql<Row>(tx)`
    WITH taken AS MATERIALIZED (
      SELECT x.* FROM unnest(${[...counts.keys()]}::text[], ${[...counts.values()]}::int[]) AS k (client_id, most)
      CROSS JOIN LATERAL take_due_notices(
        k.client_id, ${selfRegistered}, CASE WHEN ${CONFIRMED} THEN k.most ELSE 0 END, ${LEASE}) x
    )
    SELECT t.id, t.client_id, ${TENANT_OF_TAKEN} AS tenant_id, t.self_registered, t.user_id, t.sid, t.lease, t.tries, t.refusals,
           greatest(0, extract(epoch FROM t.give_up_at - now()))::float8 * 1000 AS left_ms, c.metadata,
           t.sid IS NULL AND EXISTS (
             SELECT FROM client_sign_ins r
             WHERE r.user_id = t.user_id AND r.client_id = t.client_id AND r.last_at > t.created_at) AS is_overtaken
    FROM taken t LEFT JOIN oauth_clients c ON c.id = t.client_id
    ORDER BY t.id`;
  return rows.map(takenNotice);
}

/** Deletes a notice that its client accepted, and counts it. */
export async function deliverTaken(tx: EntityManager, { id, lease }: TakenNotice): Promise<void> {
  await sql(tx)`
    WITH gone AS (
      DELETE FROM logout_notices WHERE id = ${id} AND lease = ${lease} AND dead_at IS NULL
      RETURNING client_id, self_registered
    )
    ${countedNotice(KIND, 'sent', fragment`gone`)}`;
}

/**
 * Deletes a notice that is not sent, because its client has no URL for logout tokens, or because
 * the user signed in to the client again.
 */
export async function removeTaken(tx: EntityManager, { id, lease }: TakenNotice): Promise<void> {
  await sql(
    tx,
  )`DELETE FROM logout_notices WHERE id = ${id} AND lease = ${lease} AND dead_at IS NULL`;
}

/** Releases a reserved notice, and sets its next attempt after a pause, in milliseconds. */
export async function postponeTaken(
  tx: EntityManager,
  { id, lease }: TakenNotice,
  { result, refusals }: Failure,
  pause: number,
): Promise<void> {
  await sql(tx)`
    UPDATE logout_notices SET next_attempt_at = now() + make_interval(secs => ${pause / 1000}), refusals = ${refusals}, last_result = ${result}
    WHERE id = ${id} AND lease = ${lease} AND dead_at IS NULL`;
}

/**
 * Gives a notice up as a dead letter, and records this in the audit log by the same statement. If
 * the person is not in the organization of the application, the audit event names no subject. Its
 * details have only the id of the person, which the application knows anyway. Returns false if
 * another sender has reserved the notice.
 */
export async function buryTaken(
  tx: EntityManager,
  { id, lease, clientId, userId }: TakenNotice,
  { result, refusals }: Failure,
): Promise<boolean> {
  const buried = await sql<{ id: string }>(tx)`
    WITH buried AS (
      UPDATE logout_notices SET dead_at = now(), refusals = ${refusals}, last_result = ${result}
      WHERE id = ${id} AND lease = ${lease} AND dead_at IS NULL RETURNING id, client_id, user_id, self_registered
    ), counted AS (${countedNotice(KIND, 'failed', fragment`buried`)}
    ), audited AS (${recordAudit(
      {
        id: fragment`${newUuid()}::uuid`,
        type: 'notice_dead_lettered',
        subjectId: fragment`CASE WHEN c.org_id IS NULL OR c.org_id = u.org_id THEN b.user_id END`,
        orgId: fragment`coalesce(c.org_id, u.org_id)`,
        origin: { requestId: newUuid(), ip: undefined, userAgent: undefined },
        details: { client_id: clientId, sub: userId, notice: 'backchannel_logout', result },
      },
      // At most one audit event a day is written for each application and person, because one end
      // of access may queue many notices.
      fragment`
        FROM buried b LEFT JOIN oauth_clients c ON c.id = b.client_id LEFT JOIN users u ON u.id = b.user_id
        WHERE NOT EXISTS (
          SELECT FROM logout_notices o
          WHERE o.client_id = b.client_id AND o.user_id = b.user_id AND o.id <> b.id AND o.dead_at > now() - interval '1 day')`,
    )})
    SELECT id, (SELECT array_agg(recorded) FROM audited) AS recorded FROM buried`;
  return buried.length === 1;
}

function takenNotice(row: Row): TakenNotice {
  return {
    id: row.id,
    clientId: row.client_id,
    tenantId: row.tenant_id,
    selfRegistered: row.self_registered,
    userId: row.user_id,
    sid: row.sid,
    lease: row.lease,
    tries: row.tries,
    refusals: row.refusals,
    left: row.left_ms,
    isOvertaken: row.is_overtaken,
    metadata: row.metadata,
  };
}
