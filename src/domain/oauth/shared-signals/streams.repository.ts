import { newUuid } from '#platform/clock/random.js';
import { sql } from '#platform/database/statements/sql.js';
import type { Challenge } from '#platform/errors/domain-error.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { PeopleEvent } from './security-event.js';

/** The states of a stream of security events (SSF §8.1.2). */
export const STREAM_STATUSES = ['enabled', 'paused', 'disabled'] as const;

/** One of the {@link STREAM_STATUSES}. */
export type StreamStatus = (typeof STREAM_STATUSES)[number];

/** The settings of a stream that its receiver chooses. */
export interface StreamSettings {
  readonly method: 'push' | 'poll';
  /** The URL to which events are sent; null if the receiver polls. */
  readonly endpointUrl: string | null;
  /** The encrypted Authorization header that is sent to the URL; null if there is none. */
  readonly authorizationSealed: string | null;
  /** The URIs of the events that the receiver asked for; null if it did not choose. */
  readonly eventsRequested: readonly string[] | null;
  readonly description: string | null;
}

/**
 * The application that has the stream. Its program, the receiver, sends the requests about the
 * stream.
 */
export interface StreamOwner {
  readonly clientId: string;
  readonly orgId: string;
}

/**
 * The application that has the stream, with the token of its request. The service finds the token
 * again when the request takes effect, because it may have ended meanwhile.
 */
export interface StreamCaller extends StreamOwner {
  readonly tokenHash: Buffer;
  /** The challenge of the error if the token has ended. */
  readonly challenge: Challenge;
}

/** The stream of security events for an application, which has at most one. */
export interface SignalStream extends StreamSettings {
  readonly id: string;
  readonly clientId: string;
  readonly events: readonly PeopleEvent[];
  readonly status: StreamStatus;
  readonly statusReason: string | null;
}

interface Row {
  id: string;
  client_id: string;
  method: 'push' | 'poll';
  endpoint_url: string | null;
  authorization_sealed: string | null;
  events_requested: string[] | null;
  events: PeopleEvent[];
  description: string | null;
  status: StreamStatus;
  status_reason: string | null;
}

/**
 * Creates the stream of an application. If several requests create it at once, the unique index
 * lets one succeed. Returns undefined if the application has a stream already, or is not allowed to
 * have one any more.
 */
export async function insertStream(
  tx: EntityManager,
  { clientId, orgId }: StreamOwner,
  settings: StreamSettings,
  events: readonly PeopleEvent[],
): Promise<SignalStream | undefined> {
  const [row] = await sql<Row>(tx)`
    INSERT INTO signal_streams (id, client_id, org_id, method, endpoint_url, authorization_sealed, events_requested,
                                events, description)
    SELECT ${newUuid()}::uuid, r.client_id, ${orgId}::uuid, ${settings.method}::text, ${settings.endpointUrl}::text,
           ${settings.authorizationSealed}::text, ${settings.eventsRequested}::text[], ${events}::text[],
           ${settings.description}::text
    FROM signal_receivers r WHERE r.client_id = ${clientId}
    FOR KEY SHARE OF r
    ON CONFLICT (client_id) DO NOTHING RETURNING *`;
  return row && stream(row);
}

/** Finds the stream of security events of an application; undefined if it has none. */
export async function findStream(
  tx: EntityManager,
  { clientId, orgId }: StreamOwner,
): Promise<SignalStream | undefined> {
  const [row] = await sql<Row>(tx)`
    SELECT * FROM signal_streams WHERE client_id = ${clientId} AND org_id = ${orgId}`;
  return row && stream(row);
}

/**
 * Locks the row of an application's stream against other changes, and returns the stream; undefined
 * if the application has none.
 */
export async function lockStream(
  tx: EntityManager,
  { clientId, orgId }: StreamOwner,
): Promise<SignalStream | undefined> {
  const [row] = await sql<Row>(tx)`
    SELECT * FROM signal_streams WHERE client_id = ${clientId} AND org_id = ${orgId} FOR NO KEY UPDATE`;
  return row && stream(row);
}

/**
 * Replaces the settings of a stream, whose row the caller has locked, and returns the stream. If a
 * polled stream becomes a pushed one, the events that were pushed before get the whole time for
 * their delivery again.
 */
export async function updateStream(
  tx: EntityManager,
  id: string,
  settings: StreamSettings,
  events: readonly PeopleEvent[],
): Promise<SignalStream | undefined> {
  if (settings.method === 'push') await beginTimeAgain(tx, id);
  const [row] = await sql<Row>(tx)`
    UPDATE signal_streams
    SET method = ${settings.method}, endpoint_url = ${settings.endpointUrl},
        authorization_sealed = ${settings.authorizationSealed}, events_requested = ${settings.eventsRequested}::text[],
        events = ${events}::text[], description = ${settings.description}, updated_at = now()
    WHERE id = ${id} RETURNING *`;
  return row && stream(row);
}

/**
 * Changes the state of a stream. If the new state is `disabled`, its waiting events are deleted. If
 * a paused stream is enabled, the events that were tried before the pause get the whole time for
 * their delivery again.
 */
export async function setStreamStatus(
  tx: EntityManager,
  id: string,
  status: StreamStatus,
  reason: string | null,
): Promise<void> {
  if (status === 'enabled') await beginTimeAgain(tx, id);
  await sql(tx)`
    UPDATE signal_streams SET status = ${status}, status_reason = ${reason}, updated_at = now() WHERE id = ${id}`;
  if (status === 'disabled') await sql(tx)`DELETE FROM signal_events WHERE stream_id = ${id}`;
  // The senders are notified although there is no new event, because the stream may have waiting
  // events. A client may write the id in capital letters. Polls wait by the id as PostgreSQL writes
  // it.
  if (status === 'enabled')
    await sql(tx)`SELECT pg_notify('signal_events', ${id}::uuid::text)::text`;
}

/**
 * Lets the time for the delivery of the events of a paused or polled stream begin again with the
 * next attempt, because the service itself tried nothing meanwhile.
 */
async function beginTimeAgain(tx: EntityManager, id: string): Promise<void> {
  await sql(tx)`
    UPDATE signal_events e SET give_up_at = NULL FROM signal_streams s
    WHERE s.id = ${id} AND (s.status = 'paused' OR s.method = 'poll')
      AND e.stream_id = s.id AND e.dead_at IS NULL AND e.give_up_at IS NOT NULL`;
}

/** Deletes a stream. Its waiting events are never sent; a later clean-up deletes them. */
export async function deleteStream(tx: EntityManager, id: string): Promise<void> {
  await sql(tx)`DELETE FROM signal_streams WHERE id = ${id}`;
}

/**
 * Queues a verification event (SSF §8.1.4), unless one was queued in the last `seconds`. Returns
 * false if the request came too early. One statement decides, so that one of several requests at
 * the same time succeeds. For a disabled stream nothing is queued, although the result is true.
 */
export async function queueVerification(
  tx: EntityManager,
  id: string,
  state: string | undefined,
  seconds: number,
): Promise<boolean> {
  const body = JSON.stringify(state === undefined ? {} : { state });
  const asked = await sql<{ id: string }>(tx)`
    WITH asked AS (
      UPDATE signal_streams SET verified_at = now()
      WHERE id = ${id} AND (verified_at IS NULL OR verified_at <= now() - make_interval(secs => ${seconds}))
      RETURNING id, status
    ), queued AS (
      INSERT INTO signal_events (stream_id, subject_id, type, body)
      SELECT id, id, 'verification', ${body}::jsonb FROM asked WHERE status <> 'disabled'
    )
    SELECT id FROM asked`;
  return asked.length === 1;
}

/**
 * Lists the streams that have an encrypted Authorization header, to encrypt it under a new root
 * secret.
 */
export async function listSealedHeaders(
  tx: EntityManager,
): Promise<{ readonly id: string; readonly sealed: string }[]> {
  return sql<{ id: string; sealed: string }>(tx)`
    SELECT id, authorization_sealed AS sealed FROM signal_streams WHERE authorization_sealed IS NOT NULL`;
}

/** Replaces the encrypted Authorization header of a stream, unless it has changed meanwhile. */
export async function replaceSealedHeader(
  tx: EntityManager,
  id: string,
  { from, to }: Readonly<Record<'from' | 'to', string>>,
): Promise<void> {
  await sql(tx)`
    UPDATE signal_streams SET authorization_sealed = ${to} WHERE id = ${id} AND authorization_sealed = ${from}`;
}

function stream(row: Row): SignalStream {
  return {
    id: row.id,
    clientId: row.client_id,
    method: row.method,
    endpointUrl: row.endpoint_url,
    authorizationSealed: row.authorization_sealed,
    eventsRequested: row.events_requested,
    events: row.events,
    description: row.description,
    status: row.status,
    statusReason: row.status_reason,
  };
}
