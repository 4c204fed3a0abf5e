import { recordAudit, RECORDED } from '#domain/audit/audit.repository.js';
import { TYPE_FILTERS, typesOfFilter, type TypeFilter } from '#domain/audit/audit-kinds.js';
import type { FeedPlace, FeedRow } from '#domain/audit/feed/audit-feed.repository.js';
import { ALWAYS_WANTED } from '#domain/audit/feed/wanted-events.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { tookNotice } from '../notice-figures/notice-counts.repository.js';
import type { NoticeQueue } from '../notice-figures/notice-figures.repository.js';
import type { DueClient } from '../notice-sending/fair-turns.js';
import { LEASE, type Failure, type TakenRow } from '../notice-sending/notice-sender.js';
import type { ReceiverKind } from './receivers.repository.js';

/** The name that statistics and logs give the events of a receiver, by its protocol. */
export const KIND_OF: Readonly<Record<ReceiverKind, string>> = {
  webhook: 'audit-webhook',
  otlp: 'audit-otlp',
};

/**
 * The most events of one request, by protocol: a webhook request has one event, an OTLP request up
 * to 100.
 */
const MOST_IN_BATCH: Readonly<Record<ReceiverKind, number>> = { webhook: 1, otlp: 100 };

/** The most waiting events of one receiver that the statistics count. */
const MOST_COUNTED = 1_000;

/**
 * The most hours for which the service tries to deliver the same events. Then they become dead
 * letters.
 */
const TRIED_HOURS = 24;

/**
 * The hours without a try after which the {@link TRIED_HOURS} hours begin again. The pauses between
 * tries are shorter, so that a longer gap means that no replica was running.
 */
const RECENT_HOURS = 2;

/**
 * If a receiver has failed for more than this number of days without accepting an event, its next
 * dead letter may pause it.
 */
export const FAILING_DAYS = 5;

/**
 * A JSON object with the event types for each value of a type filter, such as a group. SQL
 * statements use it to expand the filters that a receiver has stored.
 */
const TYPES_OF_FILTER = JSON.stringify(
  Object.fromEntries(TYPE_FILTERS.map((value) => [value, typesOfFilter(value)])),
);

/**
 * The SQL condition that a receiver `r` wants an event `e`. A receiver always gets the event of its
 * own test.
 */
const IS_WANTED = fragment`(
  r.types IS NULL
  OR e.type = ANY (ARRAY(SELECT jsonb_array_elements_text(${TYPES_OF_FILTER}::jsonb -> f) FROM unnest(r.types) f))
  OR e.type = ANY (${ALWAYS_WANTED}::text[])
  OR (e.type = 'event_receiver_tested' AND e.details ->> 'receiver_id' = r.id::text))`;

/**
 * Returns the event types that the filters of a receiver select; undefined if it has no filter and
 * gets every type.
 */
export function wantedTypes(filters: readonly string[] | null): readonly string[] | undefined {
  return filters?.flatMap((filter) => typesOfFilter(filter as TypeFilter));
}

/**
 * The queues of events to receivers, one for each protocol. Statistics count the events that wait.
 */
export const RECEIVER_QUEUES: readonly NoticeQueue[] = (['webhook', 'otlp'] as const).map(
  (kind) => ({
    kind: KIND_OF[kind],
    isOfReceivers: true,
    waiting: fragment`
      SELECT r.id::text AS client_id, false AS self_registered, r.org_id AS tenant_id, e.created_at
      FROM event_receivers r
      CROSS JOIN LATERAL audit_feed(r.org_id, r.epoch, r.xid, r.event_id, ${MOST_COUNTED}::int) e
      WHERE r.kind = ${kind} AND r.status = 'enabled' AND ${IS_WANTED}`,
  }),
);

/**
 * Events that one sender has reserved for a receiver, with the present settings of the receiver.
 */
export interface TakenEvents extends TakenRow {
  readonly orgId: string;
  readonly kind: ReceiverKind;
  readonly name: string;
  readonly url: string;
  readonly headerName: string | null;
  readonly headerSealed: string | null;
  readonly secretSealed: string | null;
  /**
   * The old secret, encrypted, with which requests are signed as well for some hours after a
   * rotation; null otherwise.
   */
  readonly oldSecretSealed: string | null;
  /**
   * The number of this reservation. A sender records its result only if no later sender has
   * reserved the receiver.
   */
  readonly lease: number;
  readonly types: readonly string[] | null;
  /**
   * The most events of the request. The number falls to 1 if the receiver refuses a batch, and
   * doubles after each accepted request.
   */
  readonly batch: number;
  readonly place: FeedPlace;
  /** The id of the dead letter that is repeated; null for events of the feed. */
  readonly letterId: string | null;
  /** The audit event of the dead letter that is repeated; null for events of the feed. */
  readonly letterEvent: string | null;
  /**
   * The events of the request, which are read after the reservation. The list is empty if the
   * receiver wants none of the next events. It is also empty if the event of a repeated dead letter
   * is not in the log any more.
   */
  events: readonly FeedRow[];
  /** The position in the log from which the receiver goes on after it has accepted the events. */
  end: FeedPlace;
  /** The number of events that a receiver of OTLP rejected, although it took the request. */
  rejected: number;
}

/**
 * The SQL condition that the admin who last created or resumed a receiver `r`, or set its URL or
 * header, may still read the log.
 * Usually a receiver is paused when the admin loses access. This second check reads the user's row,
 * in case the receiver was not paused.
 */
const IS_VOUCHED = fragment`
  EXISTS (SELECT FROM users v WHERE v.id = r.address_by AND v.org_id = r.org_id
          AND is_acting_admin(v.org_id, v.email, v.is_org_admin, v.active))`;

/**
 * The SQL query for the next dead letter of a receiver `r` that an admin has queued again, so that
 * its `dead_at` is NULL. The query finds no row if no such dead letter can be sent now.
 */
const LETTER = fragment`
  SELECT u.id FROM undelivered_events u
  WHERE u.receiver_id = r.id AND u.dead_at IS NULL AND u.next_attempt_at <= now()
  ORDER BY u.next_attempt_at, u.id LIMIT 1`;

const HAS_TAKEN = tookNotice(
  fragment`CASE r.kind WHEN 'webhook' THEN ${KIND_OF.webhook} ELSE ${KIND_OF.otlp} END`,
  fragment`r.id::text`,
);

/** Returns true if any receiver is enabled. */
export async function hasReceivers(tx: EntityManager): Promise<boolean> {
  const [row] = await sql<{ any: boolean }>(tx)`
    SELECT EXISTS (SELECT FROM event_receivers WHERE status = 'enabled') AS "any"`;
  return row?.any ?? false;
}

/**
 * Lists the receivers to which events can be sent now. Each has an event after its position in the
 * log, or a dead letter that an admin repeats.
 *
 * @param ids only these receivers are considered; all by default
 */
export function listDueReceivers(tx: EntityManager, ids?: readonly string[]): Promise<DueClient[]> {
  const isAmong = ids === undefined ? fragment`true` : fragment`r.id = ANY (${ids}::uuid[])`;
  return sql<DueClient>(tx)`
    SELECT r.id AS "clientId", r.org_id AS "tenantId", extract(epoch FROM r.next_attempt_at)::float8 * 1000 AS since,
           ${HAS_TAKEN} AS "hasTaken"
    FROM event_receivers r
    WHERE ${isAmong} AND r.status = 'enabled' AND r.leased_until <= now() AND ${IS_VOUCHED}
      AND (EXISTS (${LETTER}) OR (r.next_attempt_at <= now()
           AND EXISTS (SELECT FROM audit_feed(r.org_id, r.epoch, r.xid, r.event_id, 1))))`;
}

/**
 * Reserves receivers until the lease ends. A sender skips receivers that another sender has locked
 * or reserved. So a receiver gets one request at a time, and its events in order. A database server
 * that is not yet confirmed after a failover gives no receivers.
 */
export async function takeReceivers(
  tx: EntityManager,
  ids: readonly string[],
): Promise<TakenEvents[]> {
  const taken = await sql<Omit<TakenEvents, 'events' | 'end' | 'rejected'>>(tx)`
    WITH held AS MATERIALIZED (
      SELECT r.id FROM event_receivers r
      WHERE r.id = ANY (${ids}::uuid[]) AND r.status = 'enabled' AND r.leased_until <= now() AND ${CONFIRMED}
        AND ${IS_VOUCHED}
        AND (r.next_attempt_at <= now() OR EXISTS (${LETTER}))
      ORDER BY r.id FOR NO KEY UPDATE SKIP LOCKED
    ), due AS MATERIALIZED (
      SELECT r.id, (${LETTER}) AS letter FROM held r
    ), taken AS (
      UPDATE event_receivers r
      SET lease = r.lease + 1, leased_until = now() + make_interval(secs => ${LEASE}),
          tries = r.tries + CASE WHEN d.letter IS NULL THEN 1 ELSE 0 END,
          give_up_at = CASE WHEN d.letter IS NULL THEN ${giveUpOf(fragment`r.give_up_at`, fragment`r.last_tried_at`)}
                            ELSE r.give_up_at END
      FROM due d WHERE r.id = d.id RETURNING r.*, d.letter
    ), letters AS (
      UPDATE undelivered_events u
      SET tries = u.tries + 1, give_up_at = ${giveUpOf(fragment`u.give_up_at`, fragment`t.last_tried_at`)}
      FROM taken t WHERE u.id = t.letter AND u.receiver_id = t.id RETURNING u.*
    )
    SELECT t.id, t.id AS "clientId", t.org_id AS "orgId", t.kind, t.name, t.url, t.header_name AS "headerName",
           t.header_sealed AS "headerSealed", t.secret_sealed AS "secretSealed",
           CASE WHEN t.old_secret_until > now() THEN t.old_secret_sealed END AS "oldSecretSealed",
           t.lease, t.types, t.batch, l.id AS "letterId", l.event_id AS "letterEvent",
           json_build_object('epoch', t.epoch::text, 'xid', t.xid::text, 'id', t.event_id) AS place,
           coalesce(l.tries, t.tries) AS tries, coalesce(l.refusals, t.refusals) AS refusals,
           extract(epoch FROM coalesce(l.give_up_at, t.give_up_at) - now())::float8 * 1000 AS left
    FROM taken t LEFT JOIN letters l ON l.receiver_id = t.id`;
  return taken.map((one) => ({ ...one, events: [], end: one.place, rejected: 0 }));
}

/**
 * Returns the SQL of the next value of `give_up_at`, the time after which events that still fail
 * become dead letters. `before` is its present value: it stays if the last try was less than
 * {@link RECENT_HOURS} hours ago. Otherwise, and if it is NULL, the {@link TRIED_HOURS} hours begin
 * now. So events are not given up only because no replica was running.
 */
function giveUpOf(before: SqlFragment, lastTriedAt: SqlFragment): SqlFragment {
  const fresh = fragment`now() + make_interval(hours => ${TRIED_HOURS})`;
  return fragment`
    CASE WHEN ${lastTriedAt} > now() - make_interval(hours => ${RECENT_HOURS}) THEN coalesce(${before}, ${fresh}) ELSE ${fresh} END`;
}

type Settled = Pick<TakenEvents, 'clientId' | 'lease' | 'kind' | 'types'>;

/** The SQL condition that a row `r` is still reserved by this sender. */
function isHeld({ clientId, lease }: Settled): SqlFragment {
  return fragment`r.id = ${clientId} AND r.lease = ${lease}`;
}

/**
 * Returns the SQL that moves a receiver `r` to a position in the log. If an admin has changed its
 * types since the reservation, it does not move, because skipped events may have one of the new
 * types. Events that were already sent are then sent again, with the same ids.
 */
function movedTo({ types }: Settled, { epoch, xid, id }: FeedPlace): SqlFragment {
  const isSame = fragment`r.types IS NOT DISTINCT FROM ${types}::text[]`;
  return fragment`
    epoch = CASE WHEN ${isSame} THEN ${epoch}::bigint ELSE r.epoch END,
    xid = CASE WHEN ${isSame} THEN ${xid}::xid8 ELSE r.xid END,
    event_id = CASE WHEN ${isSame} THEN ${id}::uuid ELSE r.event_id END, tries = 0, refusals = 0, give_up_at = NULL`;
}

/**
 * Releases a receiver to which nothing was sent, because it wants none of the next events, and
 * moves it past them.
 */
export async function passBy(tx: EntityManager, taken: Settled, place: FeedPlace): Promise<void> {
  await sql(tx)`
    UPDATE event_receivers r SET ${movedTo(taken, place)}, leased_until = '-infinity' WHERE ${isHeld(taken)}`;
}

/**
 * Returns the SQL that sets a row back to the state before the present try, which does not count
 * because no request was sent. The next try may come after a second.
 */
function uncountedTry(row: SqlFragment): SqlFragment {
  return fragment`
    tries = greatest(${row}.tries - 1, 0), next_attempt_at = now() + interval '1 second',
    give_up_at = CASE WHEN ${row}.tries > 1 THEN ${row}.give_up_at END`;
}

/**
 * Releases a receiver to which no request was sent, because the service was slow or had a fault.
 * The try does not count, and the next one comes in a second.
 */
export async function releaseEvents(tx: EntityManager, taken: TakenEvents): Promise<void> {
  if (taken.letterId !== null) {
    await sql(tx)`
      WITH freed AS (UPDATE event_receivers r SET leased_until = '-infinity' WHERE ${isHeld(taken)} RETURNING r.id)
      UPDATE undelivered_events u SET ${uncountedTry(fragment`u`)}
      FROM freed f WHERE u.id = ${taken.letterId} AND u.receiver_id = f.id`;
    return;
  }
  await sql(tx)`
    UPDATE event_receivers r SET leased_until = '-infinity', ${uncountedTry(fragment`r`)} WHERE ${isHeld(taken)}`;
}

/**
 * Returns the SQL that adds to the daily statistics the events that a receiver accepted, or that
 * became dead letters.
 */
function counted(
  kind: ReceiverKind,
  { sent = 0, failed = 0 }: { readonly sent?: number; readonly failed?: number },
  settled: SqlFragment,
): SqlFragment {
  return fragment`
    INSERT INTO notice_counts AS c (client_id, kind, self_registered, sent, failed)
    SELECT s.id::text, ${KIND_OF[kind]}, false, ${sent}::bigint, ${failed}::bigint FROM ${settled} s
    ON CONFLICT (client_id, kind, day) DO UPDATE SET sent = c.sent + excluded.sent, failed = c.failed + excluded.failed`;
}

/** The changes to the row of a receiver that has accepted events. */
const TAKEN = fragment`
  leased_until = '-infinity', failing_since = NULL, last_tried_at = now(), last_taken_at = now()`;

/**
 * Moves a receiver past the events that it accepted, and counts them. An OTLP receiver may accept a
 * request and reject some of its events. These count as failed, and at most once a day an audit
 * event reports them.
 */
export async function deliverEvents(
  tx: EntityManager,
  taken: TakenEvents,
  result: string,
): Promise<void> {
  const { kind, letterId, events, end } = taken;
  const failed = Math.min(taken.rejected, events.length);
  const sent = events.length - failed;
  const next =
    letterId === null
      ? fragment`
          ${movedTo(taken, end)}, next_attempt_at = '-infinity', batch = least(r.batch * 2, ${MOST_IN_BATCH[kind]}::int),`
      : fragment``;
  const told = fragment`
    CASE WHEN ${failed}::int = 0 OR r.rejected_at > now() - interval '1 day' THEN r.rejected_at ELSE now() END`;
  const audit = auditOf(
    taken,
    failed,
    result,
    fragment`FROM moved h WHERE h.tells AND ${failed}::int > 0`,
  );
  await sql(tx)`
    WITH moved AS (
      UPDATE event_receivers r SET ${next} ${TAKEN}, last_result = ${result}, rejected_at = ${told}
      WHERE ${isHeld(taken)} RETURNING r.id, r.rejected_at = now() AS tells
    ), gone AS (
      DELETE FROM undelivered_events u USING moved m WHERE u.id = ${letterId} AND u.receiver_id = m.id
    ), counted AS (${counted(kind, { sent, failed }, fragment`moved`)}
    )${failed > 0 ? fragment`, audited AS (${audit})` : fragment``}
    SELECT ${failed > 0 ? RECORDED : fragment`id`} FROM moved`;
}

/** Removes a dead letter whose event is not in the log any more, and releases its receiver. */
export async function removeLetter(tx: EntityManager, taken: TakenEvents): Promise<void> {
  await sql(tx)`
    WITH freed AS (
      UPDATE event_receivers r SET leased_until = '-infinity' WHERE ${isHeld(taken)} RETURNING r.id
    )
    DELETE FROM undelivered_events u USING freed f WHERE u.id = ${taken.letterId} AND u.receiver_id = f.id`;
}

/**
 * The 4xx statuses that do not mean that the receiver refuses the events: wrong credentials, wrong
 * path, timeout and rate limit.
 */
const OF_NO_EVENT: ReadonlySet<number> = new Set([401, 404, 408, 429]);

/**
 * Returns true for the status of a response by which a receiver refuses the events themselves. The
 * same request is then likely to fail again, so that few tries follow.
 */
export function isRefusal(status: number | undefined): boolean {
  return status !== undefined && status >= 400 && status < 500 && !OF_NO_EVENT.has(status);
}

/**
 * Releases a receiver, and sets its next try after a pause, in milliseconds. After a refused batch
 * ({@link isRefusal}), events are sent one at a time. So one event that the receiver never accepts
 * does not hold up the others.
 */
export async function postponeEvents(
  tx: EntityManager,
  taken: TakenEvents,
  { result, refusals }: Failure,
  pause: number,
): Promise<void> {
  const { letterId, events } = taken;
  const failed = fragment`
    leased_until = '-infinity', failing_since = coalesce(r.failing_since, now()), last_tried_at = now(), last_result = ${result}`;
  const next = fragment`next_attempt_at = now() + make_interval(secs => ${pause / 1000})`;
  if (letterId !== null) {
    await sql(tx)`
      WITH freed AS (UPDATE event_receivers r SET ${failed} WHERE ${isHeld(taken)} RETURNING r.id)
      UPDATE undelivered_events u SET ${next}, refusals = ${refusals}, last_result = ${result}
      FROM freed f WHERE u.id = ${letterId} AND u.receiver_id = f.id`;
    return;
  }
  const isSplit = events.length > 1 && isRefusal(Number(/^answer (4\d\d)\b/.exec(result)?.[1]));
  await sql(tx)`
    UPDATE event_receivers r
    SET ${next}, refusals = ${isSplit ? 0 : refusals}, batch = CASE WHEN ${isSplit} THEN 1 ELSE r.batch END, ${failed}
    WHERE ${isHeld(taken)}`;
}

/**
 * Gives events up as dead letters, and adds the audit event about them by the same statement. The
 * receiver goes on with the later events; if its types have changed meanwhile, the given-up events
 * are sent again. A receiver that has failed for {@link FAILING_DAYS} days, with more than one
 * event, is paused; `isPaused` is then true. Returns undefined if another sender has reserved the
 * receiver.
 */
export async function buryEvents(
  tx: EntityManager,
  taken: TakenEvents,
  { result, refusals }: Failure,
): Promise<{ readonly isPaused: boolean } | undefined> {
  const { letterId, events, end, kind } = taken;
  const ids = events.map(({ id }) => id);
  const isOfMany = fragment`(${events.length > 1} OR EXISTS (
    SELECT FROM undelivered_events o
    WHERE o.receiver_id = r.id AND o.event_id <> ALL (${ids}::uuid[]) AND o.dead_at >= r.failing_since))`;
  const failed = fragment`
    leased_until = '-infinity', failing_since = coalesce(r.failing_since, now()), last_tried_at = now(), last_result = ${result},
    status = CASE WHEN r.failing_since < now() - make_interval(days => ${FAILING_DAYS}) AND ${isOfMany} THEN 'paused' ELSE r.status END`;
  const moved =
    letterId === null
      ? fragment`
          ${movedTo(taken, end)}, next_attempt_at = '-infinity', batch = 1, ${failed}`
      : failed;
  const [buried] = await sql<{ isPaused: boolean }>(tx)`
    WITH held AS (
      UPDATE event_receivers r SET ${moved} WHERE ${isHeld(taken)} RETURNING r.id, r.status
    ), dead AS (
      INSERT INTO undelivered_events AS u (receiver_id, event_id, type, event_at, dead_at, tries, refusals, last_result)
      SELECT h.id, e.id, e.type, e.at, now(), ${taken.tries}, ${refusals}, ${result}
      FROM held h, unnest(${ids}::uuid[], ${events.map(({ type }) => type)}::text[],
                          ${events.map(({ createdAt }) => createdAt)}::timestamptz[]) AS e (id, type, at)
      ON CONFLICT (receiver_id, event_id) DO UPDATE
      SET dead_at = now(), refusals = excluded.refusals, last_result = excluded.last_result
      RETURNING u.receiver_id
    ), counted AS (${counted(kind, { failed: events.length }, fragment`held`)}
    ), audited AS (${auditOfBurial(taken, result)})
    SELECT h.status = 'paused' AS "isPaused", ${RECORDED} FROM held h`;
  return buried;
}

/**
 * Returns the SQL that inserts the audit event about dead letters. It writes at most one event a
 * day for each receiver, because the receiver gets this event too and may not accept it either. If
 * the receiver is paused, the event is always written.
 */
function auditOfBurial(taken: TakenEvents, result: string) {
  return auditOf(
    taken,
    taken.events.length,
    result,
    fragment`
      FROM held h
      WHERE h.status = 'paused' OR NOT EXISTS (
        SELECT FROM undelivered_events o WHERE o.receiver_id = h.id AND o.dead_at > now() - interval '1 day')`,
  );
}

/** Returns the SQL that inserts the audit event about events that a receiver did not accept. */
function auditOf(
  { kind, orgId, clientId, name }: TakenEvents,
  events: number,
  result: string,
  source: SqlFragment,
): SqlFragment {
  return recordAudit(
    {
      id: fragment`${newUuid()}::uuid`,
      type: 'notice_dead_lettered',
      orgId,
      origin: { requestId: newUuid(), ip: undefined, userAgent: undefined },
      details: { receiver_id: clientId, name, notice: KIND_OF[kind], events, result },
    },
    source,
  );
}
