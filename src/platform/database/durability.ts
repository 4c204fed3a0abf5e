import type { Logger } from '@nestjs/common';
import type { Config } from '#platform/config/config.js';
import { DATABASE_PAGE } from '#platform/database/url/database-url.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * Switches `synchronous_commit` on for a session if it is off. With the setting off, the crash of
 * one PostgreSQL process loses commits, so that a certificate could get a serial number that
 * another has already. The service would not notice the loss. It recognizes a restart of PostgreSQL
 * by the start time, which this crash does not change.
 */
export const DURABLE_COMMITS =
  "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

type Failover = Config['database']['failover'];

/**
 * The settings of a PostgreSQL server that decide which of its commits survive a crash or a
 * failover.
 */
export interface DurabilitySettings {
  readonly fsync: string;
  readonly fullPageWrites: string;
  readonly synchronousCommit: string;
  readonly synchronousStandbyNames: string;
  /** The number of standbys that are connected to the server now. */
  readonly standbys: number;
}

/**
 * Reads the settings that decide which commits survive a crash or a failover. Consumers of logical
 * replication and running backups do not count as standbys, because a failover never promotes them
 * to the server.
 */
export async function readDurability(manager: EntityManager): Promise<DurabilitySettings> {
  const [row] = await sql<{
    fsync: string;
    full_page_writes: string;
    synchronous_commit: string;
    synchronous_standby_names: string;
    standbys: number;
  }>(manager)`
    SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
      current_setting('synchronous_commit') AS synchronous_commit,
      current_setting('synchronous_standby_names') AS synchronous_standby_names,
      (SELECT count(*)::integer FROM pg_stat_replication r
       WHERE r.application_name <> 'pg_basebackup' AND NOT EXISTS (
         SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')) AS standbys`;
  if (!row) throw new Error('SELECT returned no row');
  return {
    fsync: row.fsync,
    fullPageWrites: row.full_page_writes,
    synchronousCommit: row.synchronous_commit,
    synchronousStandbyNames: row.synchronous_standby_names,
    standbys: row.standbys,
  };
}

/**
 * Returns a warning for each setting with which PostgreSQL may lose commits that it has
 * acknowledged. Warnings about a crash of the server are always returned. If the operator has set
 * the failover to `asynchronous`, warnings about a failover are left out. The service then revokes
 * all access after each failover anyway.
 */
export function durabilityWarnings(
  settings: DurabilitySettings,
  failover: Failover,
): readonly string[] {
  const { fsync, fullPageWrites, synchronousCommit } = settings;
  const warnings: string[] = [];
  if (fsync === 'off') {
    warnings.push(
      'fsync is off: a crash of the machine may lose commits or destroy the database. Set fsync = on',
    );
  }
  if (fullPageWrites === 'off') {
    warnings.push(
      'full_page_writes is off: a crash of the machine may destroy pages of the database. Set full_page_writes = on, unless the file system writes whole pages',
    );
  }
  if (synchronousCommit === 'off') {
    warnings.push(
      'synchronous_commit is off: a crash loses the last commits. The service switches it on for its own sessions, but not behind a pooler in transaction mode. Set synchronous_commit = on for the role of the service',
    );
  }
  if (failover !== 'asynchronous') warnings.push(...replicationWarnings(settings, failover));
  return warnings.map((warning) => `SVC_DATABASE_URL: ${warning} (${DATABASE_PAGE})`);
}

/**
 * Returns warnings about settings with which a failover to a standby may lose commits. A server
 * without connected standbys gets no warning, unless the operator says by SVC_DATABASE_FAILOVER
 * that it has standbys.
 */
function replicationWarnings(
  { synchronousCommit, synchronousStandbyNames, standbys }: DurabilitySettings,
  failover: Failover,
): string[] {
  const loses = 'a failover may lose the last commits, such as revocations of access';
  const advice =
    'or set SVC_DATABASE_FAILOVER=asynchronous, and a failover ends all access by itself';
  const wrong = failover === 'synchronous' ? ', although SVC_DATABASE_FAILOVER is synchronous' : '';
  if (synchronousStandbyNames === '') {
    if (standbys === 0 && failover === undefined) return [];
    return [
      `synchronous_standby_names is empty${wrong}: ${loses}. Name the standbys in it, ${advice}`,
    ];
  }
  if (synchronousCommit !== 'local') return [];
  return [
    `synchronous_commit is local${wrong}: ${loses}. Set synchronous_commit = on for the role of the service, ${advice}`,
  ];
}

/** Logs a warning for each setting of the server with which commits may be lost. */
export async function warnOfLoss(
  manager: EntityManager,
  failover: Failover,
  log: Logger,
): Promise<void> {
  const warnings = durabilityWarnings(await readDurability(manager), failover);
  for (const warning of warnings) log.warn(warning);
}
