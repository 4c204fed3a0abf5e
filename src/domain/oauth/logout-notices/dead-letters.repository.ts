import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { noticeFigures } from '../notice-figures/notice-figures.repository.js';
import { LOGOUT_QUEUE } from './notice-queue.repository.js';

/**
 * The most dead letters (logout notices that could not be delivered) that a list shows, the newest
 * first.
 */
const MOST_SHOWN = 100;

/** The days for which a dead letter (a notice that could not be delivered) is kept. */
export const DEAD_LETTER_DAYS = 30;

/**
 * A logout notice that an application did not accept after several tries, so that it is no longer
 * sent.
 */
export interface DeadLetter {
  readonly id: string;
  readonly clientId: string;
  readonly subject: string;
  readonly sid: string | null;
  readonly createdAt: Date;
  readonly deadAt: Date;
  readonly result: string | null;
}

/**
 * A dead letter (a logout token that was not accepted) of an application that a user registered
 * without an organization.
 */
export interface OwnDeadLetter extends DeadLetter {
  readonly clientName: string | null;
}

/** The statistics and the dead letters of the notices to an application. */
export interface NoticesOfClient {
  readonly waiting: number;
  /** The time at which the oldest waiting notice was queued; null if none waits. */
  readonly oldest: Date | null;
  /**
   * The number of notices that the application accepted in the last 30 days. `failed` is the number
   * of notices that became dead letters in these days.
   */
  readonly sent: number;
  readonly failed: number;
  readonly deadLetters: readonly DeadLetter[];
}

/** The columns of a {@link DeadLetter}, from the row `n` of the table. */
const COLUMNS = fragment`
  n.id, n.client_id AS "clientId", n.user_id AS subject, n.sid, n.created_at AS "createdAt", n.dead_at AS "deadAt", n.last_result AS result`;

/**
 * Lists the newest dead letters (notices that could not be delivered) of a client, at most 100, and
 * the statistics of its notices.
 */
export async function noticesOfClient(
  tx: EntityManager,
  clientId: string,
): Promise<NoticesOfClient> {
  const figures = await noticeFigures(tx, [LOGOUT_QUEUE], { clientId });
  const deadLetters = await sql<DeadLetter>(tx)`
    SELECT ${COLUMNS} FROM logout_notices n
    WHERE n.client_id = ${clientId} AND n.dead_at IS NOT NULL ORDER BY n.id DESC LIMIT ${MOST_SHOWN}`;
  const sum = (name: 'waiting' | 'sent' | 'failed') =>
    figures.reduce((total, one) => total + one[name], 0);
  return {
    waiting: sum('waiting'),
    oldest: figures.find(({ oldest }) => oldest !== null)?.oldest ?? null,
    sent: sum('sent'),
    failed: sum('failed'),
    deadLetters,
  };
}

/**
 * Lists the newest dead letters (logout notices that could not be delivered) of the applications
 * that a user registered without an organization, at most 100. The dead letters for applications of
 * an organization are for its admins.
 */
export async function deadLettersOfOwner(
  tx: EntityManager,
  ownerId: string,
): Promise<OwnDeadLetter[]> {
  return sql<OwnDeadLetter>(tx)`
    SELECT ${COLUMNS}, c.metadata ->> 'client_name' AS "clientName"
    FROM oauth_clients c JOIN logout_notices n ON n.client_id = c.id
    WHERE c.owner_id = ${ownerId} AND c.org_id IS NULL AND n.dead_at IS NOT NULL
    ORDER BY n.id DESC LIMIT ${MOST_SHOWN}`;
}

/**
 * Puts a logout notice that could not be delivered (a dead letter) back into the queue. The service
 * then tries to deliver it for 24 hours more. Returns false if there is no such dead letter.
 */
export async function repeatDeadLetter(
  tx: EntityManager,
  clientId: string,
  id: string,
): Promise<boolean> {
  const repeated = await sql<{ told: string }>(tx)`
    WITH repeated AS (
      UPDATE logout_notices
      SET dead_at = NULL, tries = 0, refusals = 0, next_attempt_at = '-infinity', give_up_at = now() + interval '24 hours'
      WHERE id = ${id} AND client_id = ${clientId} AND dead_at IS NOT NULL RETURNING id
    )
    SELECT pg_notify('logout_notices', '')::text AS told FROM repeated`;
  return repeated.length === 1;
}

/**
 * Deletes a logout notice that could not be delivered (a dead letter). Returns false if there is no
 * such dead letter.
 */
export async function dropDeadLetter(
  tx: EntityManager,
  clientId: string,
  id: string,
): Promise<boolean> {
  const dropped = await sql<{ id: string }>(tx)`
    DELETE FROM logout_notices
    WHERE id = ${id} AND client_id = ${clientId} AND dead_at IS NOT NULL RETURNING id`;
  return dropped.length === 1;
}
