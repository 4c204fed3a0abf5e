import type { AuditClass } from '../audit-event.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { FeedPlace } from '../feed/audit-feed.repository.js';

/** The audit events of one class in one month. The month is in UTC, such as `2026-01`. */
export interface ClassMonth {
  readonly class: AuditClass;
  readonly month: string;
}

/** The number of events that each FETCH reads from the cursor. */
const FETCHED = 1_000;

/**
 * The SQL of an event as JSON text. `epoch` and `xid` are strings, because JavaScript cannot
 * represent large ones exactly as numbers.
 */
const EVENT = `json_build_object('id', e.id, 'type', e.type, 'class', e.class, 'actor_id', e.actor_id, 'subject_id', e.subject_id,
  'org_id', e.org_id, 'request_id', e.request_id, 'ip', host(e.ip), 'user_agent', e.user_agent, 'details', e.details,
  'created_at', to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'actor_email', e.actor_email,
  'subject_email', e.subject_email, 'client_name', e.client_name, 'epoch', e.epoch::text, 'xid', e.xid::text)::text`;

/**
 * The time after the end of a month in which transactions that began in the month may still commit
 * events of it. The time limits of the service end such a transaction after at most a minute.
 */
const LONGEST_WRITE = '2 minutes';

/**
 * Returns true if a month has ended in UTC, by the clock of the database, and no event of it can
 * appear any more.
 */
export async function isOver(tx: EntityManager, { month }: ClassMonth): Promise<boolean> {
  const [row] = await sql<{ is_over: boolean }>(tx)`
    SELECT ((${`${month}-01`}::date + interval '1 month') AT TIME ZONE 'UTC')
      <= clock_timestamp() - ${LONGEST_WRITE}::interval AS is_over`;
  return row?.is_over === true;
}

/**
 * Takes the lock of the clean-up, which deletes old events, until the end of the transaction. So no
 * event of the month is deleted while it is read. Returns false if a clean-up, or another program
 * that reads a month, has the lock.
 */
export async function keepEvents(tx: EntityManager): Promise<boolean> {
  const [row] = await sql<{ taken: boolean }>(tx)`
    SELECT pg_try_advisory_xact_lock(${ADVISORY_LOCKS.cleanUp}) AS taken`;
  return row?.taken === true;
}

/**
 * Reads the events of a month after a position of the feed, in the order of the feed, each as one
 * JSON document. The time limit of statements is lifted, because PostgreSQL first sorts all events
 * of the month, which can take long.
 */
export async function* readMonth(
  tx: EntityManager,
  { class: ofClass, month }: ClassMonth,
  { epoch, xid, id }: FeedPlace,
): AsyncGenerator<string> {
  await tx.query('SET LOCAL statement_timeout = 0');
  // Between two FETCH statements the transaction is idle, for as long as the object store takes to
  // receive a part of the file.
  await tx.query('SET LOCAL idle_in_transaction_session_timeout = 0');
  await tx.query(
    `DECLARE archived NO SCROLL CURSOR FOR SELECT ${EVENT} AS line FROM audit_events e
     WHERE e.class = $1 AND e.created_at >= $2::date::timestamp AT TIME ZONE 'UTC'
       AND e.created_at < ($2::date + interval '1 month') AT TIME ZONE 'UTC'
       AND (e.epoch, e.xid, e.id) > ($3::bigint, $4::xid8, $5::uuid)
     ORDER BY e.epoch, e.xid, e.id`,
    [ofClass, `${month}-01`, epoch, xid, id],
  );
  for (;;) {
    const rows = await tx.query<{ line: string }[]>(`FETCH ${FETCHED} FROM archived`);
    for (const { line } of rows) yield line;
    if (rows.length < FETCHED) break;
  }
  await tx.query('CLOSE archived');
}
