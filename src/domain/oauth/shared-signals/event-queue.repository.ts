import { recordAudit } from '#domain/audit/audit.repository.js';
import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { newUuid } from '#platform/clock/random.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { countedNotice, tookNotice } from '../notice-figures/notice-counts.repository.js';
import type { NoticeQueue } from '../notice-figures/notice-figures.repository.js';
import type { DueClient } from '../notice-sending/fair-turns.js';
import { LEASE, type Failure, type TakenRow } from '../notice-sending/notice-sender.js';
import { IS_LIVE } from './receivers.repository.js';
import type { QueuedSignal, SignalType } from './security-event.js';

/** The name of security events in statistics and logs. */
export const KIND = 'shared-signals';

/**
 * The SQL condition that the owner of the application of a stream `s` is active, or that it has no
 * owner. While the owner is deactivated, the application gets no events, which wait as those of a
 * paused stream do. The condition is a scalar subquery, which PostgreSQL runs for one stream at a
 * time. PostgreSQL could turn an EXISTS into a join with all users.
 */
const HAS_ACTIVE_OWNER = fragment`(
  SELECT c.owner_id IS NULL OR u.active FROM oauth_clients c LEFT JOIN users u ON u.id = c.owner_id
  WHERE c.id = s.client_id)`;

/**
 * The queue of security events, for the statistics of waiting events. Events of a paused or polled
 * stream do not count, because they wait for their receiver. Events of an application with a
 * deactivated owner do not count either.
 */
export const SIGNAL_QUEUE: NoticeQueue = {
  kind: KIND,
  waiting: fragment`
    SELECT s.client_id, false AS self_registered, s.org_id AS tenant_id, e.created_at
    FROM signal_streams s JOIN signal_events e ON e.stream_id = s.id
    WHERE e.dead_at IS NULL AND s.method = 'push' AND s.status = 'enabled' AND ${HAS_ACTIVE_OWNER}`,
};

/** An event that one sender has reserved for itself, with the present URL of its receiver. */
export interface TakenSignal extends QueuedSignal, TakenRow {
  readonly clientId: string;
  readonly orgId: string;
  readonly endpointUrl: string;
  readonly authorizationSealed: string | null;
  /**
   * The number of the attempt to send the event. An attempt records its result only if the row
   * still has this number. So a slow attempt does not overwrite the result of a later one.
   */
  readonly lease: number;
}

interface Row {
  id: string;
  stream_id: string;
  client_id: string;
  org_id: string;
  endpoint_url: string;
  authorization_sealed: string | null;
  subject_id: string;
  subject_email: string | null;
  type: SignalType;
  body: Record<string, unknown>;
  jti: string;
  txn: string;
  created_at: Date;
  lease: number;
  tries: number;
  refusals: number;
  time_left: number;
}

/** The SQL condition that the application of a stream `s` accepted an event in the last 30 days. */
const HAS_TAKEN = tookNotice(KIND, fragment`s.client_id`);

/** The most hours for which the service tries to deliver an event. */
const TRIED_HOURS = 24;

/**
 * Lists the applications to which an event can be sent now. In each stream only the oldest waiting
 * event about a person can be sent. So a receiver gets the events about the person in order (SSF
 * §8.1.2). A dead letter (an event that could not be delivered) does not delay the later events.
 * Times are compared with the clock of the database, because the clocks of replicas differ.
 */
export async function listDueReceivers(tx: EntityManager): Promise<DueClient[]> {
  return sql<DueClient>(tx)`
    SELECT s.client_id AS "clientId", s.org_id AS "tenantId", extract(epoch FROM d.next_attempt_at)::float8 * 1000 AS since,
           ${HAS_TAKEN} AS "hasTaken"
    FROM signal_streams s CROSS JOIN LATERAL signals_due_since(s.id) AS d (next_attempt_at)
    WHERE s.method = 'push' AND s.status = 'enabled'
      AND CASE WHEN d.next_attempt_at IS NOT NULL THEN ${HAS_ACTIVE_OWNER} END`;
}

/**
 * Reserves events that can be sent now, until the lease ends. No two senders reserve the same
 * event. A sender skips rows that another one has locked, and rows whose lease has not ended.
 * Another event about the same subject waits until the first one is finished. A database server
 * that is not yet confirmed after a failover gives no events, because each becomes a signed token.
 */
export async function takeSignals(
  tx: EntityManager,
  counts: ReadonlyMap<string, number>,
): Promise<TakenSignal[]> {
  const rows = await sql<Row>(tx)`
    WITH taken AS MATERIALIZED (
      SELECT x.* FROM unnest(${[...counts.keys()]}::text[], ${[...counts.values()]}::int[]) AS k (client_id, most)
      JOIN signal_streams s ON s.client_id = k.client_id AND s.method = 'push' AND s.status = 'enabled'
      CROSS JOIN LATERAL take_due_signals(s.id, CASE WHEN ${CONFIRMED} AND ${HAS_ACTIVE_OWNER} THEN k.most ELSE 0 END, ${LEASE}, ${TRIED_HOURS}) x
    )
    SELECT t.id, t.stream_id, s.client_id, s.org_id, s.endpoint_url, s.authorization_sealed, t.subject_id, t.subject_email,
           t.type, t.body, t.jti, t.txn, t.created_at, t.lease, t.tries, t.refusals,
           extract(epoch FROM t.give_up_at - now())::float8 * 1000 AS time_left
    FROM taken t JOIN signal_streams s ON s.id = t.stream_id
    ORDER BY t.id`;
  return rows.map(taken);
}

/** Deletes an event that its receiver accepted, and counts it. */
export async function deliverTaken(
  tx: EntityManager,
  { id, lease, clientId }: TakenSignal,
): Promise<void> {
  await sql(tx)`
    WITH gone AS (
      DELETE FROM signal_events WHERE id = ${id} AND lease = ${lease} AND dead_at IS NULL RETURNING id
    ), settled AS (SELECT ${clientId}::text AS client_id, false AS self_registered FROM gone)
    ${countedNotice(KIND, 'sent', fragment`settled`)}`;
}

/**
 * Releases an event, and sets its next attempt after a pause, in milliseconds. The later events
 * about the same subject must wait for it. They get the same time of the next attempt, so that the
 * search for events to send does not read them before.
 */
export async function postponeTaken(
  tx: EntityManager,
  { id, streamId, subjectId, lease }: TakenSignal,
  { result, refusals }: Failure,
  pause: number,
): Promise<void> {
  await sql(tx)`
    WITH first AS (
      UPDATE signal_events SET next_attempt_at = now() + make_interval(secs => ${pause / 1000}), refusals = ${refusals}, last_result = ${result}
      WHERE id = ${id} AND lease = ${lease} AND dead_at IS NULL RETURNING id, next_attempt_at
    )
    UPDATE signal_events e SET next_attempt_at = f.next_attempt_at
    FROM first f
    WHERE e.stream_id = ${streamId} AND e.subject_id = ${subjectId} AND e.id > f.id AND e.dead_at IS NULL
      AND e.next_attempt_at < f.next_attempt_at`;
}

/**
 * Gives an event up as a dead letter, and records this in the audit log by the same statement. The
 * next event about the same subject may then be sent at once. Returns false if another sender has
 * reserved the event.
 */
export async function buryTaken(
  tx: EntityManager,
  signal: Pick<TakenSignal, 'id' | 'lease' | 'clientId' | 'orgId' | 'type' | 'subjectId'>,
  { result, refusals }: Failure,
): Promise<boolean> {
  const { id, lease, clientId, orgId, type, subjectId } = signal;
  const buried = await sql<{ id: string }>(tx)`
    WITH buried AS (
      UPDATE signal_events SET dead_at = now(), refusals = ${refusals}, last_result = ${result}
      WHERE id = ${id} AND lease = ${lease} AND dead_at IS NULL RETURNING id, stream_id, subject_id
    ), next AS (
      UPDATE signal_events e SET next_attempt_at = '-infinity' FROM buried b
      WHERE e.stream_id = b.stream_id AND e.subject_id = b.subject_id AND e.id > b.id AND e.dead_at IS NULL AND e.tries = 0
    ), settled AS (SELECT ${clientId}::text AS client_id, false AS self_registered FROM buried
    ), counted AS (${countedNotice(KIND, 'failed', fragment`settled`)}
    ), audited AS (${recordAudit(
      {
        id: fragment`${newUuid()}::uuid`,
        type: 'notice_dead_lettered',
        subjectId: fragment`CASE WHEN b.subject_id <> b.stream_id THEN b.subject_id END`,
        orgId,
        origin: { requestId: newUuid(), ip: undefined, userAgent: undefined },
        details: { client_id: clientId, sub: subjectId, notice: type, result },
      },
      // At most one audit event a day is written for each stream and subject, because the end of an
      // account may queue many events.
      fragment`
        FROM buried b
        WHERE NOT EXISTS (
          SELECT FROM signal_events o
          WHERE o.stream_id = b.stream_id AND o.subject_id = b.subject_id AND o.id <> b.id
            AND o.dead_at > now() - interval '1 day')`,
    )})
    SELECT id, (SELECT array_agg(recorded) FROM audited) AS recorded FROM buried`;
  return buried.length === 1;
}

/**
 * Reads the oldest waiting events of an enabled stream whose receiver fetches the events itself
 * (polls). If the token of the poll has ended while the poll waited, it reads nothing.
 */
export async function readWaiting(
  tx: EntityManager,
  { streamId, tokenHash }: { readonly streamId: string; readonly tokenHash: Buffer },
  most: number,
): Promise<QueuedSignal[]> {
  const rows = await sql<Row>(tx)`
    SELECT e.id, e.stream_id, s.client_id, e.subject_id, e.subject_email, e.type, e.body, e.jti, e.txn, e.created_at
    FROM signal_streams s JOIN signal_events e ON e.stream_id = s.id
    WHERE s.id = ${streamId} AND s.method = 'poll' AND s.status = 'enabled' AND e.dead_at IS NULL AND ${CONFIRMED}
      AND ${HAS_ACTIVE_OWNER} AND EXISTS (
        SELECT FROM oauth_artifacts a
        WHERE a.model = 'ClientCredentials' AND a.id = ${tokenHash} AND a.client_id = s.client_id AND ${IS_LIVE})
    ORDER BY e.id LIMIT ${most}`;
  return rows.map(queued);
}

/** Removes the events that a receiver acknowledged (RFC 8936 §2.1), and counts them. */
export async function acknowledge(
  tx: EntityManager,
  streamId: string,
  jtis: readonly string[],
): Promise<void> {
  await sql(tx)`
    WITH gone AS (
      DELETE FROM signal_events WHERE stream_id = ${streamId} AND jti = ANY (${jtis}::uuid[]) AND dead_at IS NULL
      RETURNING stream_id
    )
    INSERT INTO notice_counts AS c (client_id, kind, self_registered, sent)
    SELECT s.client_id, ${KIND}, false, count(*) FROM gone g JOIN signal_streams s ON s.id = g.stream_id GROUP BY s.client_id
    ON CONFLICT (client_id, kind, day) DO UPDATE SET sent = c.sent + excluded.sent`;
}

/**
 * Finds an event that a receiver could not process (RFC 8936 §2.2), in the form that
 * {@link buryTaken} needs. Returns undefined if it does not wait in this stream.
 */
export async function findWaiting(
  tx: EntityManager,
  streamId: string,
  jti: string,
): Promise<Pick<TakenSignal, 'id' | 'lease' | 'type' | 'subjectId'> | undefined> {
  const [row] = await sql<Pick<TakenSignal, 'id' | 'lease' | 'type' | 'subjectId'>>(tx)`
    SELECT id, lease, type, subject_id AS "subjectId" FROM signal_events
    WHERE stream_id = ${streamId} AND jti = ${jti} AND dead_at IS NULL`;
  return row;
}

/**
 * The days for which waiting events are kept. Events wait in a paused stream, in a stream that its
 * receiver does not poll, or while the owner of the application is deactivated.
 */
export const KEPT_DAYS = 7;

/** The reason that the event `stream-updated` states after events were dropped. */
const DROPPED = `Events that had waited for ${KEPT_DAYS} days were dropped.`;

/**
 * Deletes events that have waited for 7 days in a paused or polled stream, or for an application
 * with a deactivated owner. It also queues one event `stream-updated` for each such stream, which
 * tells the receiver of the loss. It deletes at most `most` events, and returns their number.
 */
export async function dropStale(tx: EntityManager, most: number): Promise<number> {
  const [row] = await sql<{ n: number }>(tx)`
    WITH stale AS (
      SELECT e.id FROM signal_events e JOIN signal_streams s ON s.id = e.stream_id
      WHERE e.created_at < now() - make_interval(days => ${KEPT_DAYS}) AND e.dead_at IS NULL
        AND e.type <> 'stream-updated' AND (s.method = 'poll' OR s.status = 'paused' OR ${HAS_ACTIVE_OWNER} IS NOT TRUE)
      ORDER BY e.created_at LIMIT ${most} FOR UPDATE OF e SKIP LOCKED
    ), dropped AS (
      DELETE FROM signal_events e USING stale WHERE e.id = stale.id RETURNING e.stream_id
    ), told AS (
      INSERT INTO signal_events (stream_id, subject_id, type, body)
      SELECT s.id, s.id, 'stream-updated', jsonb_build_object('status', s.status, 'reason', ${DROPPED}::text)
      FROM signal_streams s
      WHERE s.id IN (SELECT stream_id FROM dropped) AND NOT EXISTS (
        SELECT FROM signal_events e
        WHERE e.stream_id = s.id AND e.type = 'stream-updated' AND e.dead_at IS NULL AND e.body ->> 'reason' = ${DROPPED}::text)
    )
    SELECT count(*)::int AS n FROM dropped`;
  return row?.n ?? 0;
}

function queued(row: Row): QueuedSignal {
  return {
    streamId: row.stream_id,
    clientId: row.client_id,
    subjectId: row.subject_id,
    subjectEmail: row.subject_email,
    type: row.type,
    body: row.body,
    jti: row.jti,
    txn: row.txn,
    createdAt: row.created_at,
  };
}

function taken(row: Row): TakenSignal {
  return {
    ...queued(row),
    id: row.id,
    orgId: row.org_id,
    endpointUrl: row.endpoint_url,
    authorizationSealed: row.authorization_sealed,
    lease: row.lease,
    tries: row.tries,
    refusals: row.refusals,
    left: row.time_left,
  };
}
