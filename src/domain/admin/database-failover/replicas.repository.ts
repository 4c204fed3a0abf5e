import { recordAudit } from '#domain/audit/audit.repository.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { UNCONFIRMED } from '#platform/database/statements/faults.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { ReplicaReport, Reports } from './decision.js';
import type { FailoverLimits } from './failover-limits.js';
import type { KnownStart } from './replica-memory.js';

/** The report of a process about a database server, with the id of the process. */
export interface OwnReport extends ReplicaReport {
  readonly replicaId: string;
}

/** A heartbeat that a process has just written, with the facts that the same statement read. */
export interface RecordedHeartbeat extends KnownStart {
  /**
   * The time of the heartbeat in the database, in microseconds since 1970. It grows even if a clock
   * is set back.
   */
  readonly seenAt: bigint;
  /**
   * The time of the last reset of the PostgreSQL statistics. A crash of one PostgreSQL process
   * changes it, although the start time stays the same.
   */
  readonly statisticsOf: string;
  /**
   * The audit events of the operator's command (`dist/admin.js`) since shortly before the last
   * heartbeat.
   */
  readonly byOperator: readonly OperatorRow[];
}

/**
 * An audit event of the operator's command. The service remembers the event, because the command
 * ends before it could prove a loss.
 */
export interface OperatorRow {
  readonly id: string;
  readonly type: string;
  readonly subject_id: string | null;
}

/**
 * The longest time, in seconds, from the writing of an audit event by the operator's command to its
 * commit. If the commit takes longer, the heartbeats of the processes may miss the event.
 */
export const COMMIT_WITHIN = 5;

const THIS_START = fragment`pg_postmaster_start_time()`;

/**
 * Writes the heartbeat of a process, if the database server has not started since the process last
 * confirmed that it lacks no commits (docs/decisions/0020). It also deletes the rows of processes
 * that have written no heartbeat for a day.
 *
 * The time of the heartbeat is taken before the snapshot of the statement. So the statement reads
 * each audit event that was committed before that time.
 *
 * @param known undefined for the first heartbeat of a process
 * @param last the time of the previous heartbeat, since which the events of the operator are read;
 *   undefined if there is none
 * @returns undefined if the process has to compare its memory with the server first
 * @throws Error with the SQLSTATE `UNCONFIRMED` if no process has confirmed this start of
 *   PostgreSQL
 */
export async function recordHeartbeat(
  tx: EntityManager,
  id: string,
  known: KnownStart | undefined,
  last: bigint | undefined,
): Promise<RecordedHeartbeat | undefined> {
  const [row] = await sql<{
    seen_at: string;
    started_at: string;
    confirmed_at: string;
    statistics_of: string;
    by_operator: OperatorRow[];
  }>(tx)`
    WITH confirmed AS (
      SELECT (extract(epoch FROM started_at) * 1000000)::bigint::text AS started_at,
        (extract(epoch FROM confirmed_at) * 1000000)::bigint::text AS confirmed_at
      FROM database_identity
      WHERE ${CONFIRMED} AND database_oid = (SELECT oid FROM pg_database WHERE datname = current_database())
    ), ended AS (
      DELETE FROM replicas WHERE seen_at < clock_timestamp() - interval '1 day' AND id <> ${id}
    )
    INSERT INTO replicas AS r (id, seen_at)
    SELECT ${id}, statement_timestamp() FROM confirmed
    WHERE (started_at, confirmed_at) =
      (coalesce(${known?.startedAt ?? null}, started_at), coalesce(${known?.confirmedAt ?? null}, confirmed_at))
    ON CONFLICT (id) DO UPDATE SET seen_at = greatest(excluded.seen_at, r.seen_at + interval '1 microsecond')
    RETURNING (extract(epoch FROM seen_at) * 1000000)::bigint::text AS seen_at,
      (SELECT started_at FROM confirmed), (SELECT confirmed_at FROM confirmed),
      (SELECT coalesce(stats_reset::text, '') FROM pg_stat_bgwriter) AS statistics_of,
      ${operatorRowsSince(last)} AS by_operator`;
  return (
    row && {
      seenAt: BigInt(row.seen_at),
      startedAt: row.started_at,
      confirmedAt: row.confirmed_at,
      statisticsOf: row.statistics_of,
      byOperator: row.by_operator,
    }
  );
}

/**
 * Returns the SQL that reads the audit events of the operator since {@link COMMIT_WITHIN} seconds
 * before a heartbeat. The range begins earlier than the heartbeat, because an event gets its time
 * before its commit, and is visible only after the commit. After a pause of more than a minute only
 * the last minute is read, so that no heartbeat reads many rows.
 */
function operatorRowsSince(last: bigint | undefined): SqlFragment {
  const at = last?.toString() ?? null;
  return fragment`(
    SELECT coalesce(json_agg(json_build_object('id', e.id, 'type', e.type, 'subject_id', e.subject_id)), '[]')
    FROM audit_events e
    WHERE e.class = 'admin' AND e.details ->> 'by' = 'operator'
      AND e.created_at > greatest(coalesce(to_timestamp(${at}::float8 / 1000000), statement_timestamp()),
        statement_timestamp() - interval '1 minute') - make_interval(secs => ${COMMIT_WITHIN}::float8))`;
}

/** Deletes the heartbeat of a process that stops, so that no other process waits for its report. */
export async function forgetReplica(tx: EntityManager, id: string): Promise<void> {
  await sql(tx)`DELETE FROM replicas WHERE id = ${id}`;
}

/**
 * Deletes the heartbeats of all processes, so that this process does not wait for reports of
 * processes that ended. The caller is the only process that can use the database, and it has just
 * started.
 */
export async function forgetReplicas(tx: EntityManager): Promise<void> {
  await sql(tx)`DELETE FROM replicas`;
}

/**
 * Reads the start of PostgreSQL that was confirmed last, and the time of the confirmation, in
 * microseconds since 1970. `isOfThisStart` is true for the present start. Returns undefined if none
 * was confirmed yet.
 */
export async function lastConfirmation(
  tx: EntityManager,
): Promise<(KnownStart & { readonly isOfThisStart: boolean }) | undefined> {
  const [row] = await sql<{ started_at: string; confirmed_at: string; is_this: boolean }>(tx)`
    SELECT (extract(epoch FROM started_at) * 1000000)::bigint::text AS started_at,
      (extract(epoch FROM confirmed_at) * 1000000)::bigint::text AS confirmed_at,
      started_at = ${THIS_START} AS is_this
    FROM database_identity`;
  return (
    row && {
      startedAt: row.started_at,
      confirmedAt: row.confirmed_at,
      isOfThisStart: row.is_this,
    }
  );
}

/** The facts about a confirmation that ended all access. */
export interface LastReconciliation {
  /** The time at which the server was confirmed, in microseconds since 1970. */
  readonly confirmedAt: bigint;
  /** The milliseconds since the server was confirmed. */
  readonly age: number;
  /**
   * The last serial that was revoked: the certificates with this and every lower serial are
   * revoked.
   */
  readonly revokedTo: bigint;
}

/** Reads the last confirmation of a server if it ended all access; undefined otherwise. */
export async function lastReconciliation(
  tx: EntityManager,
): Promise<LastReconciliation | undefined> {
  const [row] = await sql<{ confirmed_at: string; age: number; revoked_to: string }>(tx)`
    SELECT (extract(epoch FROM confirmed_at) * 1000000)::bigint::text AS confirmed_at,
      (extract(epoch FROM clock_timestamp() - confirmed_at) * 1000)::float8 AS age,
      coalesce((SELECT max(last_serial) FROM ssh_revoked_ranges WHERE first_serial = 1), 0)::text AS revoked_to
    FROM database_identity WHERE reconciled_at >= confirmed_at`;
  return (
    row && {
      confirmedAt: BigInt(row.confirmed_at),
      age: row.age,
      revokedTo: BigInt(row.revoked_to),
    }
  );
}

/**
 * Withdraws the confirmation of the server, so that nothing is issued until the server is confirmed
 * again.
 */
export async function withdrawConfirmation(tx: EntityManager): Promise<void> {
  await sql(tx)`UPDATE database_identity SET started_at = 'epoch'`;
}

/** Counts the ids of audit events that the server lacks. */
export async function countMissing(tx: EntityManager, ids: readonly string[]): Promise<number> {
  const [row] = await sql<{ missing: number }>(tx)`
    SELECT count(*)::int AS missing FROM unnest(${ids}::uuid[]) AS mark (id)
    WHERE NOT EXISTS (SELECT FROM audit_events e WHERE e.id = mark.id)`;
  return row?.missing ?? ids.length;
}

/**
 * Returns true if the server has this heartbeat of a process, or a later one. The result is also
 * true for a heartbeat that is older than 12 hours. A missing one proves nothing then, because
 * other processes delete the row of a process after a day without a heartbeat.
 */
export async function hasHeartbeat(
  tx: EntityManager,
  id: string,
  seenAt: bigint,
): Promise<boolean> {
  const at = seenAt.toString();
  const [row] = await sql<{ is_there: boolean }>(tx)`
    SELECT EXISTS (SELECT FROM replicas
                   WHERE id = ${id} AND (extract(epoch FROM seen_at) * 1000000)::bigint >= ${at}::bigint)
      OR to_timestamp(${at}::float8 / 1000000) < clock_timestamp() - interval '12 hours' AS is_there`;
  return row?.is_there === true;
}

/**
 * Records the report of a process about this start of PostgreSQL. A later report cannot take back a
 * reported loss.
 */
export async function recordReport(tx: EntityManager, report: OwnReport): Promise<void> {
  const { replicaId, isWitness, isLost, lacksHeartbeat, highestSerial } = report;
  await sql(tx)`
    INSERT INTO replica_reports AS r (replica_id, started_at, is_witness, is_lost, lacks_heartbeat, highest_serial,
                                      reported_at)
    VALUES (${replicaId}, ${THIS_START}, ${isWitness}, ${isLost}, ${lacksHeartbeat},
            ${highestSerial?.toString() ?? null}::bigint, clock_timestamp())
    ON CONFLICT (replica_id, started_at) DO UPDATE SET is_witness = r.is_witness OR excluded.is_witness,
      is_lost = r.is_lost OR excluded.is_lost, lacks_heartbeat = r.lacks_heartbeat OR excluded.lacks_heartbeat,
      highest_serial = greatest(r.highest_serial, excluded.highest_serial)`;
}

/**
 * Returns true if this start of PostgreSQL is unconfirmed and the process has not reported about it
 * yet. The other processes then wait for the report.
 */
export async function isReportDue(tx: EntityManager, replicaId: string): Promise<boolean> {
  const [row] = await sql<{ is_due: boolean }>(tx)`
    SELECT NOT EXISTS (SELECT FROM replica_reports WHERE replica_id = ${replicaId} AND started_at = ${THIS_START})
       AND NOT EXISTS (SELECT FROM database_identity WHERE started_at = ${THIS_START}) AS is_due`;
  return row?.is_due === true;
}

/**
 * Reads the reports about this start of PostgreSQL; undefined while a running process may still
 * report.
 */
export async function completeReports(
  tx: EntityManager,
  { recent, patience }: FailoverLimits,
): Promise<Reports | undefined> {
  const [state] = await sql<{ is_complete: boolean; is_over: boolean }>(tx)`
    SELECT NOT EXISTS (
        SELECT FROM replicas r
        WHERE r.seen_at > (SELECT max(seen_at) FROM replicas) - make_interval(secs => ${recent / 1000}::float8)
          AND NOT EXISTS (SELECT FROM replica_reports p WHERE p.replica_id = r.id AND p.started_at = ${THIS_START})
      ) AS is_complete, EXISTS (
        SELECT FROM replica_reports p
        WHERE p.started_at = ${THIS_START}
          AND p.reported_at <= clock_timestamp() - make_interval(secs => ${patience / 1000}::float8)
      ) AS is_over`;
  if (!state || !(state.is_complete || state.is_over)) return undefined;
  const rows = await sql<{
    is_witness: boolean;
    is_lost: boolean;
    lacks_heartbeat: boolean;
    highest_serial: string | null;
  }>(tx)`
    SELECT is_witness, is_lost, lacks_heartbeat, highest_serial::text FROM replica_reports WHERE started_at = ${THIS_START}`;
  const all = rows.map(({ is_witness, is_lost, lacks_heartbeat, highest_serial }) => ({
    isWitness: is_witness,
    isLost: is_lost,
    lacksHeartbeat: lacks_heartbeat,
    highestSerial: highest_serial === null ? undefined : BigInt(highest_serial),
  }));
  return { all, isComplete: state.is_complete };
}

/** Deletes every report, so that the next change of the server begins without old reports. */
export async function deleteReports(tx: EntityManager): Promise<void> {
  await sql(tx)`DELETE FROM replica_reports`;
}

/**
 * Takes the lock that lets one process at a time confirm a server, until the end of the
 * transaction.
 *
 * @returns false if another process has the lock
 */
export async function tryConfirmationLock(tx: EntityManager): Promise<boolean> {
  const [row] = await sql<{ taken: boolean }>(tx)`
    SELECT pg_try_advisory_xact_lock(${ADVISORY_LOCKS.confirmation}) AS taken`;
  return row?.taken === true;
}

/**
 * Removes the time limits of a transaction that stays open while all access ends, which may take
 * long.
 */
export async function liftTimeLimits(tx: EntityManager): Promise<void> {
  await sql(tx)`SET LOCAL statement_timeout = 0`;
  await sql(tx)`SET LOCAL lock_timeout = 0`;
  await sql(tx)`SET LOCAL idle_in_transaction_session_timeout = 0`;
}

/**
 * The error if a transaction reaches another PostgreSQL server, or another start of it, than the
 * earlier transactions of the confirmation. Its code says that the server is not confirmed.
 */
export class AnotherServer extends Error {
  readonly code = UNCONFIRMED;
}

/**
 * Checks that a transaction is on the start of PostgreSQL that began at a given time.
 *
 * @throws AnotherServer if it is on another start
 */
export async function assertStart(tx: EntityManager, startedAt: string): Promise<void> {
  const [row] = await sql<{ started_at: string }>(tx)`
    SELECT (extract(epoch FROM ${THIS_START}) * 1000000)::bigint::text AS started_at`;
  if (row?.started_at !== startedAt) throw new AnotherServer('another PostgreSQL answers now');
}

/**
 * Records in the audit log that a start of PostgreSQL was confirmed, and what ended because of lost
 * commits.
 */
export async function recordConfirmation(tx: EntityManager, details: object): Promise<void> {
  await sql(tx)`${recordAudit({
    type: 'database_confirmed',
    origin: fragment`NULL::text, NULL::inet, NULL::text`,
    details,
  })}`;
}
