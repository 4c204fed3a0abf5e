import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { noticeFigures } from '../notice-figures/notice-figures.repository.js';
import { LOGOUT_QUEUE } from './notice-queue.repository.js';

/** The most dead letters that a list shows: the newest. */
const MOST_SHOWN = 100;

/** The days for which a dead letter is kept. */
export const DEAD_LETTER_DAYS = 30;

/** A logout token that an application did not take within a day. */
export interface DeadLetter {
  readonly id: string;
  readonly subject: string;
  readonly sid: string | null;
  readonly createdAt: Date;
  readonly deadAt: Date;
  readonly result: string | null;
}

/** The figures and the dead letters of the notices to an application. */
export interface NoticesOfClient {
  readonly waiting: number;
  /** The time at which the oldest waiting notice was queued; null if none waits. */
  readonly oldest: Date | null;
  /**
   * The number of notices that the application took in the last 30 days; `failed` is that of the
   * dead letters.
   */
  readonly sent: number;
  readonly failed: number;
  readonly deadLetters: readonly DeadLetter[];
}

/** Lists the newest dead letters of a client, at most 100, and the figures of its notices. */
export async function noticesOfClient(
  tx: EntityManager,
  clientId: string,
): Promise<NoticesOfClient> {
  const figures = await noticeFigures(tx, [LOGOUT_QUEUE], { clientId });
  const rows = await sql<{
    id: string;
    user_id: string;
    sid: string | null;
    created_at: Date;
    dead_at: Date;
    last_result: string | null;
  }>(tx)`
    SELECT id, user_id, sid, created_at, dead_at, last_result FROM logout_notices
    WHERE client_id = ${clientId} AND dead_at IS NOT NULL ORDER BY id DESC LIMIT ${MOST_SHOWN}`;
  const deadLetters = rows.map((row) => ({
    id: row.id,
    subject: row.user_id,
    sid: row.sid,
    createdAt: row.created_at,
    deadAt: row.dead_at,
    result: row.last_result,
  }));
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
 * Puts a dead letter back into the queue, so that it is tried for 24 hours more. Returns false if
 * there is no such dead letter.
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

/** Drops a dead letter. Returns false if there is no such dead letter. */
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
