import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The most dead letters that a list shows, the newest first. */
const MOST_SHOWN = 100;

/**
 * A dead letter: an event that a receiver did not accept after several tries, so that it is no
 * longer sent.
 */
export interface UndeliveredEvent {
  readonly id: string;
  readonly eventId: string;
  readonly type: string;
  readonly eventAt: Date;
  readonly deadAt: Date;
  readonly result: string | null;
}

/** Lists the dead letters of a receiver, the newest first, at most 100. */
export function listUndelivered(
  tx: EntityManager,
  receiverId: string,
): Promise<UndeliveredEvent[]> {
  return sql<UndeliveredEvent>(tx)`
    SELECT id, event_id AS "eventId", type, event_at AS "eventAt", dead_at AS "deadAt", last_result AS result
    FROM undelivered_events WHERE receiver_id = ${receiverId} AND dead_at IS NOT NULL
    ORDER BY id DESC LIMIT ${MOST_SHOWN}`;
}

/**
 * Makes the service try for 24 hours more to send a dead letter (an event that was not accepted).
 * Returns false if the receiver has no such dead letter.
 */
export async function repeatUndelivered(
  tx: EntityManager,
  receiverId: string,
  id: string,
): Promise<boolean> {
  const repeated = await sql<{ told: string }>(tx)`
    WITH repeated AS (
      UPDATE undelivered_events
      SET dead_at = NULL, tries = 0, refusals = 0, next_attempt_at = '-infinity', give_up_at = NULL
      WHERE id = ${id} AND receiver_id = ${receiverId} AND dead_at IS NOT NULL RETURNING id
    )
    SELECT pg_notify('event_receivers', '')::text AS told FROM repeated`;
  return repeated.length === 1;
}

/** Deletes a dead letter. Returns false if the receiver has no such dead letter. */
export async function dropUndelivered(
  tx: EntityManager,
  receiverId: string,
  id: string,
): Promise<boolean> {
  const dropped = await sql<{ id: string }>(tx)`
    DELETE FROM undelivered_events
    WHERE id = ${id} AND receiver_id = ${receiverId} AND dead_at IS NOT NULL RETURNING id`;
  return dropped.length === 1;
}
