import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import type { Config } from '#platform/config/config.js';
import { ConfirmationGate } from '#platform/database/identity/confirmation-gate.js';
import { reasonOf, sqlStateOf, UNCONFIRMED } from '#platform/database/statements/faults.js';
import { sql } from '#platform/database/statements/sql.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { refuseForeignDatabase, type Composition } from './composition.js';
import { openPool, TIMEOUTS } from './connection.js';
import { compareMigrations } from './migrations.js';
import {
  checkVersion,
  locateServer,
  uncheckedDatabase,
  unreachable,
  type LocatedServer,
  type UncheckedDatabase,
} from './open-database.js';

/**
 * The largest number of connections of an operator's command: one connection for its work, and a
 * spare connection.
 */
const CONNECTIONS = 2;

const UNCONFIRMED_SERVER =
  'PostgreSQL was restarted or replaced, and no service has confirmed it yet. A running service does so within seconds: ' +
  'try again. Otherwise start the service, or run node dist/admin.js reconcile. See docs/operations/failover.md.';

/**
 * The database of an installed service. An operator's command opens it without migrating it and
 * without creating anything in it.
 */
export interface InstalledDatabase {
  readonly dataSource: DataSource;
  /**
   * Opens connections also to an unconfirmed server, which is one that no service has checked for
   * lost commits since the server started (docs/decisions/0020).
   */
  readonly unchecked: UncheckedDatabase;
  close(): Promise<void>;
}

/** The choices of an operator's command about how the database is opened. */
interface CommandOptions {
  readonly isGated: boolean;
  /** The milliseconds for which a statement waits for its answer; by default as in the service. */
  readonly answerWithin?: number | undefined;
}

/**
 * Opens the database of an installed service for an operator's command that runs beside the
 * service. It starts the embedded server if the service is down.
 *
 * @param isGated true to refuse a server that no service has checked for lost commits since its
 *   start. The embedded server is never refused: while this command uses it, no service can run
 *   that would check it.
 * @throws Error if the database cannot be reached, is in use, belongs to another composition
 *   (production, demo or test), or was never used by a service; if its migrations differ from those
 *   of this version; and for a refused server
 */
export async function openInstalledDatabase(
  config: Config['database'],
  composition: Composition,
  { isGated, answerWithin }: CommandOptions,
): Promise<InstalledDatabase> {
  const opened = await connectToInstalled(config, { answerWithin });
  try {
    await refuseForeignDatabase(opened.dataSource, composition);
    const later = await assertInstalled(opened.dataSource.manager);
    if (later !== undefined) throw new Error(later);
    if (!isGated || config.url === undefined) return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
  await opened.close();
  return connectToInstalled(config, { gate: new ConfirmationGate(), answerWithin });
}

/**
 * Connects to the database of an installed service, without checking its content.
 *
 * @param options `gate` refuses connections to a server that no service has checked for lost
 *   commits since the server started; by default no connection is refused. `answerWithin` is the
 *   number of milliseconds for which a statement waits for its answer.
 * @throws Error for a database that cannot be reached
 */
export async function connectToInstalled(
  config: Config['database'],
  {
    gate,
    answerWithin = TIMEOUTS.query_timeout,
  }: Pick<CommandOptions, 'answerWithin'> & { readonly gate?: ConfirmationGate } = {},
): Promise<InstalledDatabase> {
  await assertEmbeddedExists(config);
  const log = new Logger('database');
  const server = await locateServer(config, log);
  try {
    const timeouts = { ...TIMEOUTS, query_timeout: answerWithin };
    const opening = openPool(server.address, log, CONNECTIONS, { gate, timeouts });
    const dataSource = await opening.catch((error: unknown) => {
      throw sqlStateOf(error) === UNCONFIRMED
        ? new Error(UNCONFIRMED_SERVER, { cause: error })
        : unreachable(server.address, error);
    });
    const unchecked = uncheckedDatabase(config, server, log);
    return { dataSource, unchecked, close: () => closeBoth(dataSource, server) };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/**
 * Checks that a command of this version can use a database.
 *
 * @returns undefined if the command may change the database. Otherwise a text with the reason: a
 *   later version has migrated the database. It may have added kinds of access that this version
 *   would not end
 * @throws Error for a server that is too old, a database that no service has used, and missing
 *   migrations
 */
export async function assertInstalled(manager: EntityManager): Promise<string | undefined> {
  await checkVersion(manager);
  const [table] = await sql<{ exists: boolean }>(manager)`
    SELECT to_regclass('deployment') IS NOT NULL AS exists`;
  if (!table?.exists) throw new Error('No service was installed in this database yet.');
  const { missing, later } = await compareMigrations(manager);
  if (missing.length > 0) {
    throw new Error(
      `The database lacks ${missing.length} migrations of this version, first ${missing[0]}. Start the service or run npm run migrate first, or use the admin.js of the version that runs.`,
    );
  }
  if (later.length === 0) return undefined;
  return `A later version has migrated the database (${later[0]}), and has perhaps kinds of access that this version would not end. Use the admin.js of that version.`;
}

/**
 * Returns the version of the PostgreSQL server, and the time of its clock in milliseconds since
 * 1970.
 */
export async function serverFacts(
  manager: EntityManager,
): Promise<{ readonly version: string; readonly time: number }> {
  const [row] = await sql<{ version: string; time: number }>(manager)`
    SELECT current_setting('server_version') AS version,
           (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time`;
  if (!row) throw new Error('SELECT returned no row');
  return row;
}

/** Returns true if the database role of the connection may create tables, which migrations need. */
export async function mayCreateTables(manager: EntityManager): Promise<boolean> {
  const [row] = await sql<{ may: boolean | null }>(manager)`
    SELECT has_schema_privilege(current_schema(), 'CREATE') AS may`;
  return row?.may === true;
}

async function closeBoth(dataSource: DataSource, server: LocatedServer): Promise<void> {
  try {
    await dataSource.destroy();
  } finally {
    await server.stop();
  }
}

/**
 * Refuses a data directory without an embedded cluster. If the operator named the wrong folder, a
 * command must not make an empty database there.
 */
async function assertEmbeddedExists({ url, dataDir }: Config['database']): Promise<void> {
  if (url !== undefined) return;
  const directory = join(dataDir, 'postgres');
  await stat(directory).catch((error: unknown) => {
    throw new Error(
      `SVC_DATABASE_URL is not set, and SVC_DATA_DIR has no embedded database: ${directory}: ${reasonOf(error)}`,
      { cause: error },
    );
  });
}
