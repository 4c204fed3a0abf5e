import type { Logger } from '@nestjs/common';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { systemClock } from '#platform/clock/clock.js';
import type { Config } from '#platform/config/config.js';
import { completeMigrations, startBackgroundMigration } from './background-migration.js';
import { BoundedDataSource } from './bounded-data-source.js';
import { compilesStatements, warnOfCompilation } from './session-settings/compilation.js';
import { claimDatabase, refuseForeignDatabase, type Composition } from './composition.js';
import {
  openCostlyPool,
  openConfirmationConnection,
  openMigrationConnection,
  openPool,
  type DatabaseAddress,
} from './connection.js';
import { startEmbeddedPostgres } from '#platform/database/embedded-postgres/embedded-postgres.js';
import { isReadOnly, reasonOf } from '#platform/database/statements/faults.js';
import { addressOf } from '#platform/database/hosts/host-client.js';
import { ConfirmationGate } from '#platform/database/identity/confirmation-gate.js';
import { warnOfLoss } from './durability.js';
import { warnOfIsolation } from './session-settings/isolation.js';
import { preparePooledRole, warnOfPooledRole } from './pooler.js';
import { setPooled } from '#platform/database/statements/pooled.js';
import { becomesSilent } from '#platform/database/hosts/silence-watch.js';
import { databaseProblem, passingFault, startProblem } from '#platform/database/hosts/refusals.js';
import { onRecorded } from '#platform/database/statements/recorded-ids.js';
import { migrate } from './migrations.js';
import { sql } from '#platform/database/statements/sql.js';
import { COSTLY_STATEMENT, sharesOf, TenantWork } from '#platform/database/tenants/tenant-work.js';

/**
 * The milliseconds for which a start waits while the database cannot be reached or takes no writes
 * (`PATIENCE`). The milliseconds between two attempts (`RETRY_EVERY`).
 */
const PATIENCE = 30_000;
const RETRY_EVERY = 1_000;

/**
 * The number of connections that bypass a pooler in transaction mode. Two tasks need them for their
 * advisory locks: the clean-up, and the checks of domains. An advisory lock belongs to a session,
 * which the pooler does not keep.
 */
const DIRECT_CONNECTIONS = 2;

/**
 * Opens connections to the database even if no service has checked the server for lost commits
 * since the server started (docs/decisions/0020). The pools of the service refuse such a server,
 * which is called unconfirmed.
 */
export interface UncheckedDatabase {
  /** True for the embedded PostgreSQL while no other process uses it. */
  readonly isEmbedded: boolean;
  /**
   * Opens one connection to a server that may be unconfirmed. The caller must destroy the data
   * source.
   *
   * @param answerWithin the longest wait for an answer, in milliseconds; a minute by default
   */
  open(answerWithin?: number): Promise<DataSource>;
}

/**
 * Confirms the database server when the service starts, after the migrations and before the pools
 * open. To confirm means to check if the server has lost commits, and to revoke all access if it
 * has.
 */
export type ConfirmAtStart = (database: UncheckedDatabase) => Promise<void>;

/** The connection pools of a process, and the limits for the work of each organization on them. */
interface Pools {
  readonly main: DataSource;
  readonly costly: DataSource;
  /**
   * The pool that bypasses a pooler in transaction mode. Undefined without such a pooler, because
   * the connections of the main pool are then sessions of PostgreSQL itself.
   */
  readonly direct?: DataSource;
  readonly tenantWork: TenantWork;
}

/**
 * The database of this process: it is connected and migrated, and belongs to the composition
 * (production, demo or test) of the process.
 */
export class Database {
  readonly #closing = new AbortController();

  constructor(
    private readonly pools: Pools,
    /**
     * The check that refuses connections to an unconfirmed server, which is one that no service has
     * checked for lost commits since the server started.
     */
    readonly gate: ConfirmationGate,
    readonly unchecked: UncheckedDatabase,
    private readonly stopServer: () => Promise<void>,
    private readonly log: Logger,
  ) {}

  get dataSource(): DataSource {
    return this.pools.main;
  }

  /**
   * The limits for the work of each organization. Costly work, which is searches, lists and
   * exports, has a pool of its own.
   */
  get tenantWork(): TenantWork {
    return this.pools.tenantWork;
  }

  /**
   * Registers a function that gets the ids of new audit rows after a transaction of a pool has
   * committed them.
   */
  onRecorded(listener: (ids: readonly string[]) => void): void {
    for (const pool of this.#all()) onRecorded(pool, listener);
  }

  /**
   * Cuts off the connections as soon as the server does not answer, until {@link close} has closed
   * them. It is called when the stop of the service begins, so that neither requests nor background
   * work make the stop wait for a server that has frozen or vanished: their statements fail then.
   */
  async cutIfSilent(): Promise<void> {
    const bounded = this.#all().filter((pool) => pool instanceof BoundedDataSource);
    const watchReceipts = () => {
      const begun = bounded.map((pool) => pool.watchReceipts());
      return () => begun.some((hasReceived) => hasReceived());
    };
    const watched = { pool: this.dataSource, watchReceipts };
    if (!(await becomesSilent(watched, this.#closing.signal, this.log))) return;
    for (const pool of bounded) pool.cut();
  }

  /**
   * Closes the pools, then stops the embedded server if this process runs one. Each wait has a time
   * limit.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    try {
      await Promise.all(this.#all().map((pool) => closed(pool)));
    } finally {
      await this.stopServer();
    }
  }

  #all(): DataSource[] {
    const { main, costly, direct } = this.pools;
    return direct ? [main, costly, direct] : [main, costly];
  }
}

async function closed(pool: DataSource): Promise<void> {
  if (pool.isInitialized) await pool.destroy();
}

/**
 * A database that the primary process located and migrated for its workers. A worker neither starts
 * the embedded server nor stops it.
 */
export interface PreparedDatabase {
  /** The address of the embedded server; undefined for the database of SVC_DATABASE_URL. */
  readonly embedded: DatabaseAddress | undefined;
  /** True for the first worker of a start: no other process uses the embedded server yet. */
  readonly isFirst: boolean;
  /** The worker's part of SVC_DB_MAX_CONNECTIONS. */
  readonly connections: number;
}

/**
 * Locates the database for the workers of this process, or starts the embedded one, and migrates
 * it. Missing background migrations go on after the function has returned.
 *
 * @returns the database as every worker but the first gets it (`isFirst` is false), and the
 *   function that stops it
 * @throws Error in the cases of {@link openDatabase}
 */
export async function prepareDatabase(
  config: Config['database'],
  workers: number,
  composition: Composition,
  log: Logger,
): Promise<PreparedDatabase & { stop(): Promise<void> }> {
  const connections = Math.max(1, Math.floor(config.maxConnections / workers));
  const server = await locateServer({ ...config, maxConnections: connections }, log, workers);
  try {
    const lacksMigrations = await preparePatiently(server, config, composition, log);
    const stopBackground = lacksMigrations && startBackgroundMigration(server.address, log);
    return {
      embedded: config.url === undefined ? server.address : undefined,
      isFirst: false,
      connections,
      stop: async () => {
        if (stopBackground) await stopBackground();
        await server.stop();
      },
    };
  } catch (error) {
    await server.stop();
    throw startProblem(error, config.url);
  }
}

/**
 * Opens the configured database, or starts the embedded one. It migrates the database, and records
 * or checks that it belongs to this composition (production, demo or test).
 *
 * @param confirm checks the server for lost commits; without it the pools accept an unchecked
 *   server
 * @param from the database that the primary process prepared; undefined in any other process
 * @throws Error if the database cannot be reached for 30 s, is too old, cannot be migrated, or
 *   belongs to another composition
 */
export async function openDatabase(
  config: Config['database'],
  composition: Composition,
  log: Logger,
  confirm?: ConfirmAtStart,
  from?: PreparedDatabase,
): Promise<Database> {
  const server = await serverOf(config, log, from);
  let stopBackground: (() => Promise<void>) | undefined;
  const stop = async () => {
    await stopBackground?.();
    await server.stop();
  };
  try {
    const lacksMigrations = from ? false : await preparePatiently(server, config, composition, log);
    const unchecked = uncheckedDatabase(config, server, log, from);
    await confirm?.(unchecked);
    const gate = new ConfirmationGate();
    const maxConnections = from?.connections ?? config.maxConnections;
    const pools = await openPools({ ...config, maxConnections }, server, log, confirm && gate);
    if (lacksMigrations) stopBackground = startBackgroundMigration(server.address, log);
    return new Database(pools, gate, unchecked, stop, log);
  } catch (error) {
    await stop();
    throw startProblem(error, config.url);
  }
}

async function openPools(
  { maxConnections, pooler }: Config['database'],
  { address, pooled }: LocatedServer,
  log: Logger,
  gate: ConfirmationGate | undefined,
): Promise<Pools> {
  const shares = sharesOf(maxConnections);
  const options = { gate, isPooled: pooled !== undefined };
  const main = await openPool(pooled ?? address, log, shares.main, options);
  const costly = await openCostlyPool(address, log, shares.costly, COSTLY_STATEMENT, gate);
  const pools = { main, costly, tenantWork: new TenantWork(main, costly, shares) };
  if (!pooled) return pools;
  const direct = await openPool(address, log, DIRECT_CONNECTIONS, { gate });
  setPooled(main, { direct, knowsNames: pooler === 'transaction-prepared' });
  return { ...pools, direct };
}

/** Returns the object that opens connections to a server that may be unconfirmed. */
export function uncheckedDatabase(
  { url }: Config['database'],
  { address }: LocatedServer,
  log: Logger,
  from?: PreparedDatabase,
): UncheckedDatabase {
  return {
    isEmbedded: url === undefined && from?.isFirst !== false,
    open: (answerWithin) => openConfirmationConnection(address, log, answerWithin),
  };
}

/**
 * Migrates the configured database, or the embedded one, and records or checks that it belongs to
 * this composition. Unlike a start of the service, it also waits for the background migrations.
 *
 * @throws Error in the cases of {@link openDatabase}, and if a background migration fails
 */
export async function migrateDatabase(
  config: Config['database'],
  composition: Composition,
  log: Logger,
): Promise<void> {
  const server = await locateServer(config, log);
  try {
    const lacksMigrations = await preparePatiently(server, config, composition, log);
    if (lacksMigrations) await completeMigrations(server.address, log);
  } catch (error) {
    throw startProblem(error, config.url);
  } finally {
    await server.stop();
  }
}

/**
 * The address of a database, and the function that stops the embedded server if this process runs
 * one.
 */
export interface LocatedServer {
  /** The address of PostgreSQL itself. */
  readonly address: DatabaseAddress;
  /** The address of the pooler in transaction mode, if there is one. */
  readonly pooled?: DatabaseAddress;
  stop(): Promise<void>;
}

/** Stops nothing, because this process did not start the server. */
const notOurs = () => Promise.resolve();

/** Returns the server that the primary process located, or else locates it. */
function serverOf(
  config: Config['database'],
  log: Logger,
  from: PreparedDatabase | undefined,
): Promise<LocatedServer> {
  if (!from?.embedded) return locateServer(config, log);
  return Promise.resolve({ address: from.embedded, stop: notOurs });
}

/**
 * Finds the address of the configured database, or starts the embedded server.
 *
 * @param workers the number of processes that will connect, each with the connections of `config`
 */
export async function locateServer(
  { url, directUrl, pooler, dataDir, maxConnections }: Config['database'],
  log: Logger,
  workers = 1,
): Promise<LocatedServer> {
  if (url !== undefined) {
    if (pooler === undefined || directUrl === undefined)
      return { address: addressOf(url), stop: notOurs };
    return { address: addressOf(directUrl), pooled: addressOf(url), stop: notOurs };
  }
  // The server needs more connections than the pools have: for the supervisor's session, for a
  // migration, and for an operator.
  const settings = { max_connections: String((maxConnections + 10) * workers) };
  const server = await startEmbeddedPostgres({ dataDir, log, settings });
  const { socketDir: host, port, user, database } = server;
  return { address: { host, port, user, database }, stop: () => server.stop() };
}

/**
 * Prepares the database, and tries again while the database cannot be reached or takes no writes.
 * The database may start later than this process, and a standby may soon be promoted. It gives up
 * after `PATIENCE`. Any other error is thrown at once.
 *
 * @returns true if the database lacks background migrations
 */
async function preparePatiently(...parts: Parameters<typeof prepare>): Promise<boolean> {
  const [, , , log] = parts;
  const deadline = systemClock.monotonic() + PATIENCE;
  for (;;) {
    try {
      return await prepare(...parts);
    } catch (error) {
      const passing = passingFault(error);
      if (passing === undefined || systemClock.monotonic() >= deadline) throw error;
      const state = isReadOnly(passing) ? 'takes no writes' : 'cannot be reached';
      log.warn(`The database ${state} yet (${reasonOf(passing)}): trying again`);
      await systemClock.sleep(RETRY_EVERY);
    }
  }
}

async function prepare(
  { address, pooled }: LocatedServer,
  { url, failover }: Config['database'],
  composition: Composition,
  log: Logger,
): Promise<boolean> {
  const dataSource = await connect(address, log);
  let compiled: boolean;
  let lacksMigrations: boolean;
  try {
    await checkVersion(dataSource.manager);
    await refuseForeignDatabase(dataSource, composition);
    lacksMigrations = await migrate(dataSource, log);
    await claimDatabase(dataSource, composition);
    if (url !== undefined) await warnOfLoss(dataSource.manager, failover, log);
    if (pooled) await preparePooler(pooled, dataSource.manager, log);
    else await warnOfIsolation(dataSource.manager, log);
    // This session was opened before the migration switched compilation (JIT) off for the role, so
    // it may still show the old value. A new connection shows if the setting has an effect.
    compiled = await compilesStatements(dataSource.manager);
  } finally {
    await dataSource.destroy();
  }
  if (compiled) await checkNewConnection(address, log);
  return lacksMigrations;
}

/**
 * Stores the settings that the connections of a pooler need in the database role of the service. It
 * then warns of each setting that a new connection of the pooler still lacks.
 */
async function preparePooler(
  pooled: DatabaseAddress,
  manager: EntityManager,
  log: Logger,
): Promise<void> {
  for (const step of [
    (tx: EntityManager) => preparePooledRole(tx, manager, log),
    (tx: EntityManager) => warnOfPooledRole(tx, log),
  ]) {
    const pool = await openPool(pooled, log, 1, { isPooled: true });
    setPooled(pool, { direct: pool, knowsNames: false });
    try {
      await step(pool.manager);
    } finally {
      await pool.destroy();
    }
  }
}

/**
 * Warns if a new connection still compiles statements (JIT). The check ignores that the service
 * switches compilation off on each of its own connections. It shows if the setting of the role has
 * an effect.
 */
async function checkNewConnection(address: DatabaseAddress, log: Logger): Promise<void> {
  const dataSource = await connect(address, log);
  try {
    await warnOfCompilation(dataSource.manager, log);
  } finally {
    await dataSource.destroy();
  }
}

async function connect(address: DatabaseAddress, log: Logger): Promise<DataSource> {
  return openMigrationConnection(address, log).catch((error: unknown) => {
    throw unreachable(address, error);
  });
}

/**
 * Returns the error of a start that cannot connect. If the address is that of SVC_DATABASE_URL, the
 * error names the variable.
 */
export function unreachable(address: DatabaseAddress, cause: unknown): unknown {
  if (!('connectionString' in address)) return cause;
  return databaseProblem('the database cannot be reached', cause);
}

/**
 * Checks the version of PostgreSQL.
 * @throws Error for a server that is older than PostgreSQL 15
 */
export async function checkVersion(manager: EntityManager): Promise<void> {
  const [server] = await sql<{ version: string; enough: boolean }>(manager)`
    SELECT current_setting('server_version') AS version,
           current_setting('server_version_num')::integer >= 150000 AS enough`;
  if (server?.enough) return;
  throw new Error(`PostgreSQL 15 or newer is needed; this server is ${server?.version}.`);
}
