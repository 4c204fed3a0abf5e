import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { COUNTED_DAYS } from './notice-counts.repository.js';

/** A queue of notices that the service sends to applications or to event receivers. */
export interface NoticeQueue {
  /** The kind of the notices in the queue, such as `back-channel-logout`. */
  readonly kind: string;
  /** True for a queue of audit events to event receivers, which are not OAuth clients. */
  readonly isOfReceivers?: boolean;
  /**
   * A SELECT of the notices that are not sent yet: `client_id`, `self_registered`, `tenant_id` and
   * `created_at`.
   */
  readonly waiting: SqlFragment;
}

/** The numbers of waiting, sent and failed notices of one kind. */
export interface NoticeFigures {
  readonly kind: string;
  /**
   * True if the numbers are about audit events to event receivers, and not about notices to OAuth
   * clients.
   */
  readonly isOfReceivers: boolean;
  /**
   * True if the numbers are about clients that registered themselves, which are counted separately.
   */
  readonly isSelfRegistered: boolean;
  readonly waiting: number;
  /** The time at which the oldest notice that is not sent yet was queued; null if there is none. */
  readonly oldest: Date | null;
  /**
   * The age of the oldest notice that is not sent yet, in milliseconds by the clock of the
   * database; 0 if there is none.
   */
  readonly age: number;
  /**
   * The number of notices that clients accepted in the last {@link COUNTED_DAYS} days; `failed` is
   * the number of notices that became dead letters in these days.
   */
  readonly sent: number;
  readonly failed: number;
}

/** The clients whose notices are counted: all clients, those of one organization, or one client. */
export type CountedClients = 'all' | { readonly orgId: string } | { readonly clientId: string };

interface Row {
  self_registered: boolean;
  waiting: string;
  oldest: Date | null;
  age: number;
  sent: string;
  failed: string;
}

/**
 * Reads the numbers of notices in queues. Each queue gets two entries: one for the clients of
 * organizations and users, one for the clients that registered themselves.
 */
export async function noticeFigures(
  tx: EntityManager,
  queues: readonly NoticeQueue[],
  of: CountedClients,
): Promise<NoticeFigures[]> {
  const figures: NoticeFigures[] = [];
  for (const queue of queues) {
    const rows = await sql<Row>(tx)`
      WITH waiting AS (
        SELECT w.self_registered, count(*) AS waiting, min(w.created_at) AS oldest
        FROM (${queue.waiting}) w WHERE ${isWaitingOf(of)} GROUP BY w.self_registered
      ), counted AS (
        SELECT k.self_registered, sum(k.sent) AS sent, sum(k.failed) AS failed FROM notice_counts k
        WHERE k.kind = ${queue.kind} AND k.day > current_date - ${COUNTED_DAYS}::int AND ${isCountedOf(of)}
        GROUP BY k.self_registered
      )
      SELECT s.self_registered, coalesce(w.waiting, 0) AS waiting, w.oldest,
             coalesce(greatest(0, extract(epoch FROM now() - w.oldest)), 0)::float8 * 1000 AS age,
             coalesce(k.sent, 0) AS sent, coalesce(k.failed, 0) AS failed
      FROM (VALUES (false), (true)) s (self_registered)
      LEFT JOIN waiting w USING (self_registered) LEFT JOIN counted k USING (self_registered)
      ORDER BY s.self_registered`;
    figures.push(...rows.map((row) => figuresOf(queue, row)));
  }
  return figures;
}

function isWaitingOf(of: CountedClients): SqlFragment {
  if (of === 'all') return fragment`true`;
  return 'orgId' in of
    ? fragment`w.tenant_id = ${of.orgId} AND NOT w.self_registered`
    : fragment`w.client_id = ${of.clientId}`;
}

function isCountedOf(of: CountedClients): SqlFragment {
  if (of === 'all') return fragment`true`;
  return 'orgId' in of
    ? fragment`k.client_id IN (SELECT c.id FROM oauth_clients c WHERE c.org_id = ${of.orgId})`
    : fragment`k.client_id = ${of.clientId}`;
}

function figuresOf({ kind, isOfReceivers = false }: NoticeQueue, row: Row): NoticeFigures {
  return {
    kind,
    isOfReceivers,
    isSelfRegistered: row.self_registered,
    waiting: Number(row.waiting),
    oldest: row.oldest,
    age: row.age,
    sent: Number(row.sent),
    failed: Number(row.failed),
  };
}
