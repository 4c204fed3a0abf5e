import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { SignalType } from './security-event.js';

/** The most dead letters (events that were given up) that a list shows, the newest first. */
const MOST_SHOWN = 100;

/**
 * A dead letter: a security event that could not be delivered to its receiver, so that it is no
 * longer sent.
 */
export interface DeadSignal {
  readonly id: string;
  readonly type: SignalType;
  /** The id of the user; null for an event about the stream itself. */
  readonly subject: string | null;
  readonly createdAt: Date;
  readonly deadAt: Date;
  readonly result: string | null;
}

/**
 * The dead letters (events that could not be delivered) of an application, and its events that are
 * not sent yet.
 */
export interface SignalsOfClient {
  readonly waiting: number;
  /** The time of the oldest event that is not sent yet; null if there is none. */
  readonly oldest: Date | null;
  readonly deadLetters: readonly DeadSignal[];
}

/**
 * Lists the dead letters (events that could not be delivered) of an application, the newest first,
 * and counts the events that are not sent yet.
 */
export async function signalsOfClient(
  tx: EntityManager,
  clientId: string,
): Promise<SignalsOfClient> {
  const [waiting] = await sql<{ n: number; oldest: Date | null }>(tx)`
    SELECT count(*)::int AS n, min(e.created_at) AS oldest
    FROM signal_streams s JOIN signal_events e ON e.stream_id = s.id
    WHERE s.client_id = ${clientId} AND e.dead_at IS NULL`;
  const deadLetters = await sql<DeadSignal>(tx)`
    SELECT e.id, e.type, nullif(e.subject_id, e.stream_id) AS subject, e.created_at AS "createdAt", e.dead_at AS "deadAt",
           e.last_result AS result
    FROM signal_streams s JOIN signal_events e ON e.stream_id = s.id
    WHERE s.client_id = ${clientId} AND e.dead_at IS NOT NULL ORDER BY e.id DESC LIMIT ${MOST_SHOWN}`;
  return { waiting: waiting?.n ?? 0, oldest: waiting?.oldest ?? null, deadLetters };
}

/**
 * Queues a dead letter (an event that could not be delivered) again, so that its delivery is tried
 * for another day. Returns false if there is no such dead letter.
 */
export async function repeatDeadSignal(
  tx: EntityManager,
  clientId: string,
  id: string,
): Promise<boolean> {
  const repeated = await sql<{ told: string }>(tx)`
    WITH repeated AS (
      UPDATE signal_events e
      SET dead_at = NULL, tries = 0, refusals = 0, next_attempt_at = '-infinity', give_up_at = NULL
      FROM signal_streams s
      WHERE e.id = ${id} AND s.id = e.stream_id AND s.client_id = ${clientId} AND e.dead_at IS NOT NULL RETURNING e.id
    )
    SELECT pg_notify('signal_events', '')::text AS told FROM repeated`;
  return repeated.length === 1;
}

/**
 * Deletes a dead letter (an event that could not be delivered). Returns false if there is no such
 * dead letter.
 */
export async function dropDeadSignal(
  tx: EntityManager,
  clientId: string,
  id: string,
): Promise<boolean> {
  const dropped = await sql<{ id: string }>(tx)`
    DELETE FROM signal_events e USING signal_streams s
    WHERE e.id = ${id} AND s.id = e.stream_id AND s.client_id = ${clientId} AND e.dead_at IS NOT NULL RETURNING e.id`;
  return dropped.length === 1;
}
