import {
  isOutage,
  NOT_IN_STATE,
  READ_ONLY,
  sqlStateOf,
} from '#platform/database/statements/faults.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The identity of a database, by which a change of its server is noticed. A restart changes the
 * start time alone. A promotion also changes the timeline. A restored backup changes the timeline,
 * the system identifier or the oid.
 */
export interface DatabaseIdentity {
  /** The start of the server, `pg_postmaster_start_time()`, in microseconds since 1970. */
  readonly startedAt: string;
  /** The identifier of the database cluster; null if the role of the service may not read it. */
  readonly systemIdentifier: string | null;
  readonly databaseOid: string;
  /**
   * The timeline, a number that grows when a standby is promoted. It is the first 8 hexadecimal
   * digits in the name of the present WAL file. Null if the role of the service may not read that
   * name.
   */
  readonly timeline: string | null;
}

/**
 * Reads the identity of the server behind a connection. It runs outside of a transaction, which an
 * error would end. PostgreSQL raises an error for a function that the role may not call. The
 * timeline comes from the name of the WAL file, which shows a promotion at once. The control file
 * shows it only after a checkpoint.
 *
 * @param manager bound to one connection
 * @throws Error with the SQLSTATE `READ_ONLY` if the server is a standby; the driver's error if a
 *   statement fails
 */
export async function readIdentity(manager: EntityManager): Promise<DatabaseIdentity> {
  const [server] = await sql<{ started_at: string; database_oid: string; is_standby: boolean }>(
    manager,
  )`
    SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text AS started_at,
      (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS database_oid,
      pg_is_in_recovery() AS is_standby`;
  if (!server) throw new Error('SELECT returned no row');
  if (server.is_standby) {
    throw Object.assign(new Error('this PostgreSQL is a standby'), { code: READ_ONLY });
  }
  return {
    startedAt: server.started_at,
    systemIdentifier: await readable(
      () => sql<{ value: string }>(manager)`
        SELECT system_identifier::text AS value FROM pg_control_system()`,
    ),
    databaseOid: server.database_oid,
    timeline: await readable(
      () => sql<{ value: string }>(manager)`
        SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS value`,
    ),
  };
}

/**
 * Returns the value that a statement reads; null if the server does not have the value, or the role
 * may not read it. Servers of cloud providers refuse a function with SQLSTATEs of their own, so
 * most SQLSTATEs count as a refusal.
 *
 * @throws the driver's error if the server cannot be reached or is a standby
 */
async function readable(
  read: () => Promise<readonly { readonly value: string }[]>,
): Promise<string | null> {
  try {
    const [row] = await read();
    return row?.value ?? null;
  } catch (error) {
    const state = sqlStateOf(error);
    if (state === undefined || state === NOT_IN_STATE || isOutage(error)) throw error;
    return null;
  }
}

/**
 * Reads the identity of the server that was confirmed last, and locks its row until the end of the
 * transaction. Returns undefined for a database in which no server was confirmed yet.
 */
export async function lockConfirmedIdentity(
  tx: EntityManager,
): Promise<DatabaseIdentity | undefined> {
  const [row] = await sql<{
    started_at: string;
    system_identifier: string | null;
    database_oid: string;
    timeline: string | null;
  }>(tx)`
    SELECT (extract(epoch FROM started_at) * 1000000)::bigint::text AS started_at, system_identifier::text,
      database_oid::text, timeline
    FROM database_identity FOR UPDATE`;
  return (
    row && {
      startedAt: row.started_at,
      systemIdentifier: row.system_identifier,
      databaseOid: row.database_oid,
      timeline: row.timeline,
    }
  );
}

/**
 * Records the identity of the server that the transaction runs on. After the commit of the
 * transaction the server counts as confirmed, and the service uses it.
 *
 * @param isReconciled true if all recorded access was revoked before this call, because the server
 *   has lost commits
 * @throws Error if the transaction runs on another server than the given one, or on the same server
 *   after a restart
 */
export async function recordIdentity(
  tx: EntityManager,
  { startedAt, systemIdentifier, databaseOid, timeline }: DatabaseIdentity,
  isReconciled: boolean,
): Promise<void> {
  const recorded = await sql<{ only_row: boolean }>(tx)`
    INSERT INTO database_identity (started_at, system_identifier, database_oid, timeline, confirmed_at, reconciled_at)
    SELECT pg_postmaster_start_time(), ${systemIdentifier}::bigint, ${databaseOid}::oid, ${timeline}::text,
      clock_timestamp(), CASE WHEN ${isReconciled}::boolean THEN clock_timestamp() END
    WHERE (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint = ${startedAt}::bigint
    ON CONFLICT (only_row) DO UPDATE SET started_at = excluded.started_at, system_identifier = excluded.system_identifier,
      database_oid = excluded.database_oid, timeline = excluded.timeline, confirmed_at = greatest(excluded.confirmed_at, database_identity.confirmed_at + interval '1 microsecond'),
      reconciled_at = CASE WHEN excluded.reconciled_at IS NULL THEN database_identity.reconciled_at
        ELSE greatest(excluded.reconciled_at, database_identity.confirmed_at + interval '1 microsecond') END
    RETURNING only_row`;
  if (recorded.length === 0) throw new Error('the connection reaches another PostgreSQL now');
}
