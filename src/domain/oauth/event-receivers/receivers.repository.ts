import { newUuid } from '#platform/clock/random.js';
import type { FeedPlace } from '#domain/audit/feed/audit-feed.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The protocols by which a receiver gets events: Standard Webhooks, or OTLP (OpenTelemetry) logs.
 */
export const RECEIVER_KINDS = ['webhook', 'otlp'] as const;
/** One of the {@link RECEIVER_KINDS}. */
export type ReceiverKind = (typeof RECEIVER_KINDS)[number];

/**
 * The states of a receiver. A paused receiver gets no events, and keeps its position in the log.
 */
export const RECEIVER_STATUSES = ['enabled', 'paused'] as const;
/** One of the {@link RECEIVER_STATUSES}. */
export type ReceiverStatus = (typeof RECEIVER_STATUSES)[number];

/** A receiver of the audit log of an organization, without its secrets. */
export interface EventReceiver {
  readonly id: string;
  readonly orgId: string;
  readonly kind: ReceiverKind;
  readonly name: string;
  readonly url: string;
  /**
   * The audit events that the receiver gets, by type or by a kind or group of types; null for every
   * event.
   */
  readonly types: readonly string[] | null;
  /**
   * The name of the additional header that an admin chose for each request; null if there is none.
   */
  readonly headerName: string | null;
  readonly status: ReceiverStatus;
  readonly createdBy: string;
  readonly createdByEmail: string | null;
  /**
   * True if the admin who last vouched for the receiver is still an admin. That admin created it,
   * set its URL or header, or resumed it.
   */
  readonly isMakerAdmin: boolean;
  readonly createdAt: Date;
  /** The time until which requests are also signed with the old secret; null if there is none. */
  readonly oldSecretUntil: Date | null;
  /** The result of the last request, in words for an admin; null before the first request. */
  readonly lastResult: string | null;
  readonly lastTriedAt: Date | null;
  /** The time at which the receiver last accepted an event; null if it never did. */
  readonly lastTakenAt: Date | null;
  /** The time of the next try after a failure; null if the last request did not fail. */
  readonly nextAttemptAt: Date | null;
}

/** The settings of a receiver, with its secrets as they are stored. */
export interface StoredSettings {
  readonly name: string;
  readonly url: string;
  readonly types: readonly string[] | null;
  readonly headerName: string | null;
  readonly headerSealed: string | null;
  readonly status: ReceiverStatus;
}

/** The values of a new receiver, as they are stored. */
export interface NewReceiver extends Omit<StoredSettings, 'status'> {
  readonly orgId: string;
  readonly kind: ReceiverKind;
  readonly secretSealed: string | null;
  readonly createdBy: string;
  /** The position in the audit log after which the receiver begins. */
  readonly from: FeedPlace;
}

/** The columns of an {@link EventReceiver}, from the row `r` of the table. */
const COLUMNS = fragment`
  r.id, r.org_id AS "orgId", r.kind, r.name, r.url, r.types, r.header_name AS "headerName", r.status, r.created_by AS "createdBy",
  r.created_by_email AS "createdByEmail", r.created_at AS "createdAt", r.last_result AS "lastResult",
  CASE WHEN r.old_secret_until > now() THEN r.old_secret_until END AS "oldSecretUntil",
  r.last_tried_at AS "lastTriedAt", r.last_taken_at AS "lastTakenAt",
  CASE WHEN r.tries > 0 AND r.next_attempt_at > '-infinity' THEN r.next_attempt_at END AS "nextAttemptAt",
  EXISTS (SELECT FROM users u WHERE u.id = r.address_by AND u.org_id = r.org_id
          AND is_acting_admin(u.org_id, u.email, u.is_org_admin, u.active)) AS "isMakerAdmin"`;

/** Lists the receivers of an organization, the newest first. */
export function listReceivers(tx: EntityManager, orgId: string): Promise<EventReceiver[]> {
  return sql<EventReceiver>(tx)`
    SELECT ${COLUMNS} FROM event_receivers r WHERE r.org_id = ${orgId} ORDER BY r.id DESC`;
}

/** Finds a receiver by its id; undefined if the organization has no such receiver. */
export async function findReceiverOf(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<EventReceiver | undefined> {
  const [found] = await sql<EventReceiver>(tx)`
    SELECT ${COLUMNS} FROM event_receivers r WHERE r.id = ${id} AND r.org_id = ${orgId}`;
  return found;
}

/** Adds a receiver, and makes the senders of all replicas read the queue. Returns its id. */
export async function insertReceiver(tx: EntityManager, receiver: NewReceiver): Promise<string> {
  const { epoch, xid, id: eventId } = receiver.from;
  const [row] = await sql<{ id: string }>(tx)`
    WITH made AS (
      INSERT INTO event_receivers (id, org_id, kind, name, url, types, header_name, header_sealed, secret_sealed, created_by,
                                   address_by, created_by_email, epoch, xid, event_id)
      VALUES (${newUuid()}, ${receiver.orgId}, ${receiver.kind}, ${receiver.name}, ${receiver.url}, ${receiver.types}::text[],
              ${receiver.headerName}, ${receiver.headerSealed}, ${receiver.secretSealed}, ${receiver.createdBy},
              ${receiver.createdBy}, (SELECT email FROM users WHERE id = ${receiver.createdBy}), ${epoch}::bigint, ${xid}::xid8, ${eventId})
      RETURNING id)
    SELECT id, pg_notify('event_receivers', '')::text AS told FROM made`;
  if (!row) throw new Error('INSERT returned no row');
  return row.id;
}

/**
 * Lists the enabled receivers for which a user vouched last: the user created the receiver, set its
 * URL or header, or resumed it. They are paused when the user is not an admin any more.
 */
export function listReceiversOfAdmin(
  tx: EntityManager,
  userId: string,
): Promise<{ readonly id: string; readonly name: string }[]> {
  return sql<{ id: string; name: string }>(tx)`
    SELECT id, name FROM event_receivers WHERE address_by = ${userId} AND status = 'enabled' ORDER BY id`;
}

/**
 * Locks a receiver for a change, and returns its stored settings. Returns undefined if the
 * organization has no such receiver.
 */
export async function lockReceiver(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<(StoredSettings & { readonly kind: ReceiverKind }) | undefined> {
  const [found] = await sql<StoredSettings & { readonly kind: ReceiverKind }>(tx)`
    SELECT kind, name, url, types, header_name AS "headerName", header_sealed AS "headerSealed", status
    FROM event_receivers WHERE id = ${id} AND org_id = ${orgId} FOR NO KEY UPDATE`;
  return found;
}

/**
 * Changes the settings of a receiver. The next try comes at once, because the change may have
 * repaired the receiver. A request that is under way still uses the old settings.
 *
 * @param addressBy the admin who set the URL or the header, or resumed the receiver; undefined for
 *   any other change. If given, the counts of tries begin again.
 */
export async function changeReceiver(
  tx: EntityManager,
  id: string,
  { name, url, types, headerName, headerSealed, status }: StoredSettings,
  addressBy: string | undefined,
): Promise<void> {
  const again =
    addressBy === undefined
      ? fragment``
      : fragment`, address_by = ${addressBy}, tries = 0, refusals = 0, give_up_at = NULL, failing_since = NULL`;
  await sql(tx)`
    WITH changed AS (
      UPDATE event_receivers
      SET name = ${name}, url = ${url}, types = ${types}::text[], header_name = ${headerName}, header_sealed = ${headerSealed},
          status = ${status}, next_attempt_at = '-infinity'${again}
      WHERE id = ${id} RETURNING id
    ), letters AS (
      UPDATE undelivered_events u SET tries = 0, refusals = 0, give_up_at = NULL, next_attempt_at = '-infinity'
      FROM changed c WHERE u.receiver_id = c.id AND u.dead_at IS NULL AND ${addressBy !== undefined}
    )
    SELECT pg_notify('event_receivers', '')::text AS told FROM changed`;
}

/**
 * Removes a receiver with its dead letters. Returns the removed receiver; undefined if there is
 * none, for example because another request removed it.
 */
export async function deleteReceiver(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<
  { readonly name: string; readonly kind: ReceiverKind; readonly url: string } | undefined
> {
  const [gone] = await sql<{ name: string; kind: ReceiverKind; url: string }>(tx)`
    DELETE FROM event_receivers WHERE id = ${id} AND org_id = ${orgId} RETURNING name, kind, url`;
  return gone;
}

/**
 * Replaces the secret of a webhook. For some hours, requests are also signed with the old secret; 0
 * hours end it at once. Returns the time until which the old secret signs; null if it ended.
 * Returns undefined for a receiver that is no webhook.
 */
export async function replaceSecret(
  tx: EntityManager,
  orgId: string,
  id: string,
  secretSealed: string,
  hours: number,
): Promise<{ readonly until: Date | null } | undefined> {
  const [row] = await sql<{ until: Date | null }>(tx)`
    UPDATE event_receivers
    SET old_secret_sealed = CASE WHEN ${hours}::int > 0 THEN secret_sealed END, secret_sealed = ${secretSealed},
        old_secret_until = CASE WHEN ${hours}::int > 0 THEN now() + make_interval(hours => ${hours}::int) END
    WHERE id = ${id} AND org_id = ${orgId} AND kind = 'webhook'
    RETURNING old_secret_until AS until`;
  return row;
}

/**
 * Records the time of a test of a receiver, and lets its next try come at once. Returns false if
 * the last test was less than `seconds` ago. One statement decides, so that one of several requests
 * at the same time succeeds.
 */
export async function noteTest(tx: EntityManager, id: string, seconds: number): Promise<boolean> {
  const noted = await sql<{ id: string }>(tx)`
    UPDATE event_receivers SET tested_at = now(), next_attempt_at = '-infinity'
    WHERE id = ${id} AND (tested_at IS NULL OR tested_at < now() - make_interval(secs => ${seconds}))
    RETURNING id`;
  return noted.length === 1;
}

/** Makes the senders of all replicas read the queue after the commit. */
export async function wakeSenders(tx: EntityManager): Promise<void> {
  await sql(tx)`SELECT pg_notify('event_receivers', '')`;
}

/** An encrypted text of a receiver, with the name of its column. */
export interface SealedColumn {
  readonly id: string;
  readonly column: 'header_sealed' | 'secret_sealed' | 'old_secret_sealed';
  readonly sealed: string;
}

/**
 * Lists the encrypted texts of all receivers, so that the service can encrypt them under a new root
 * secret.
 */
export function listSealed(tx: EntityManager): Promise<SealedColumn[]> {
  return sql<SealedColumn>(tx)`
    SELECT r.id, s."column", s.sealed
    FROM event_receivers r CROSS JOIN LATERAL (VALUES
      ('header_sealed', r.header_sealed), ('secret_sealed', r.secret_sealed), ('old_secret_sealed', r.old_secret_sealed)
    ) s ("column", sealed)
    WHERE s.sealed IS NOT NULL`;
}

/** Replaces an encrypted text, unless another replica has replaced it already. */
export async function replaceSealed(
  tx: EntityManager,
  { id, column, sealed }: SealedColumn,
  to: string,
): Promise<void> {
  const next = (name: SealedColumn['column']) => (column === name ? to : null);
  await sql(tx)`
    UPDATE event_receivers
    SET header_sealed = CASE WHEN header_sealed = ${sealed} THEN coalesce(${next('header_sealed')}, header_sealed) ELSE header_sealed END,
        secret_sealed = CASE WHEN secret_sealed = ${sealed} THEN coalesce(${next('secret_sealed')}, secret_sealed) ELSE secret_sealed END,
        old_secret_sealed = CASE WHEN old_secret_sealed = ${sealed} THEN coalesce(${next('old_secret_sealed')}, old_secret_sealed)
                                 ELSE old_secret_sealed END
    WHERE id = ${id}`;
}
