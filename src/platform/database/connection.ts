import { EventEmitter } from 'node:events';
import type { Logger } from '@nestjs/common';
import { Client, Pool, type ClientBase, type PoolClient, type PoolConfig } from 'pg';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { isReadOnly } from '#platform/database/statements/faults.js';
import { BoundedDataSource } from './bounded-data-source.js';
import { NO_COMPILATION } from './session-settings/compilation.js';
import { DriverClient } from '#platform/database/hosts/driver-client.js';
import type { UrlAddress } from '#platform/database/hosts/host-client.js';
import { DURABLE_COMMITS } from './durability.js';
import { READ_COMMITTED } from './session-settings/isolation.js';
import { NO_LIMITS } from './session-settings/limits.js';
import type { ConfirmationGate } from '#platform/database/identity/confirmation-gate.js';

/** The address of the database: a `postgres://` URL, or the embedded server's Unix socket. */
export type DatabaseAddress =
  UrlAddress | Readonly<Record<'host' | 'user' | 'database', string> & { port: number }>;

/**
 * Time limits in milliseconds, so that no request waits without limit for a database that hangs.
 */
export const TIMEOUTS = {
  connectionTimeoutMillis: 5_000,
  lock_timeout: 5_000,
  statement_timeout: 10_000,
  /**
   * After this time the driver in this process ends the wait for an answer. It is longer than the
   * limits of the server, so that it only ends the wait for a server that has frozen.
   */
  query_timeout: 12_000,
  idle_in_transaction_session_timeout: 15_000,
} as const satisfies PoolConfig;

/**
 * Lets a connection without a {@link ConfirmationGate} write audit rows although no service has
 * checked the server for lost commits since the server started. Otherwise a trigger in the database
 * would refuse the rows.
 */
const UNCONFIRMED_WRITES = "SET svc.unconfirmed = 'on'";

type Timeouts = Readonly<Record<keyof typeof TIMEOUTS, number>>;

/** Prepares a new connection before its first use; the pool waits for it. */
type Prepare = (client: ClientBase) => Promise<unknown>;
type PoolSettings = Omit<PoolConfig, 'onConnect'> & { readonly onConnect: Prepare };

/** Settings of one pool, beside those that all pools have. */
export interface PoolOptions {
  readonly timeouts?: Timeouts;
  /** Further settings of each connection, as SQL statements. */
  readonly limits?: string;
  /**
   * Refuses connections to a PostgreSQL that no service has checked for lost commits since
   * PostgreSQL started (docs/decisions/0020). Without a gate, every connection is accepted.
   */
  readonly gate?: ConfirmationGate | undefined;
  /**
   * True if the address is that of a pooler in transaction mode. No settings are then sent for the
   * session, because the pooler hands one session to several clients. The database role has the
   * settings instead.
   */
  readonly isPooled?: boolean;
}

/**
 * Opens a pool of at most `maxConnections` connections, and makes a first connection to check the
 * address.
 *
 * @throws the driver's error if the database cannot be reached; the function tries only once
 */
export async function openPool(
  address: DatabaseAddress,
  log: Logger,
  maxConnections: number,
  { timeouts = TIMEOUTS, limits = '', gate, isPooled = false }: PoolOptions = {},
): Promise<DataSource> {
  const onConnect: Prepare = async (client) => {
    if (isPooled) {
      await gate?.check(client);
      return;
    }
    await client.query(`${NO_COMPILATION}; ${READ_COMMITTED}; ${DURABLE_COMMITS}; ${limits}`);
    await (gate ? gate.check(client) : client.query(UNCONFIRMED_WRITES));
  };
  const { connectionTimeoutMillis, query_timeout } = timeouts;
  const ofSession = isPooled ? { connectionTimeoutMillis, query_timeout } : timeouts;
  const settings = { ...ofSession, onConnect, max: maxConnections };
  const dataSource = await connect(address, log, settings);
  const pool = poolOf(dataSource);
  if (!pool) throw new TypeError('The driver has no pool of the pg that this project locks');
  pool.on('connect', noteReadOnly);
  pool.on('release', (_error, client) => discardUnlessUseful(client));
  return dataSource;
}

/**
 * Opens the pool for costly work, which is searches, lists and exports. The settings that only this
 * pool has are set by SQL statements. They are no start-up parameters, as {@link TIMEOUTS} are,
 * because PgBouncer does not pass start-up parameters on. Parallel queries are off, so that a
 * statement uses only one process of the database.
 *
 * @param statementTimeout the time limit of each statement, in milliseconds
 * @throws the driver's error if the database cannot be reached
 */
export async function openCostlyPool(
  address: DatabaseAddress,
  log: Logger,
  maxConnections: number,
  statementTimeout: number,
  gate?: ConfirmationGate,
): Promise<DataSource> {
  const limits = `SET statement_timeout = ${statementTimeout}; SET max_parallel_workers_per_gather = 0`;
  return openPool(address, log, maxConnections, { limits, gate });
}

/**
 * The milliseconds that the connection of {@link openConfirmationConnection} waits for an answer.
 * The wait has a limit, because a server that vanished without closing its connections must not
 * keep the service from connecting to the next server.
 */
const ANSWER_OF_CONFIRMATION = 60_000;

/**
 * Opens one connection for the check whether the server has lost commits (docs/decisions/0020). Its
 * statements have no time limit on the server.
 */
export function openConfirmationConnection(
  address: DatabaseAddress,
  log: Logger,
  answerWithin = ANSWER_OF_CONFIRMATION,
): Promise<DataSource> {
  const { connectionTimeoutMillis } = TIMEOUTS;
  const settings = { connectionTimeoutMillis, query_timeout: answerWithin, max: 1 };
  return connect(address, log, { ...settings, onConnect: ungated });
}

/** Opens one connection that may wait as long as a migration takes. */
export function openMigrationConnection(
  address: DatabaseAddress,
  log: Logger,
): Promise<DataSource> {
  const { connectionTimeoutMillis } = TIMEOUTS;
  return connect(address, log, { connectionTimeoutMillis, max: 1, onConnect: ungated });
}

/**
 * Prepares the connection of {@link openConfirmationConnection} or {@link openMigrationConnection}.
 * It removes the time limits, switches the compilation of statements (JIT) off, and sets the
 * isolation level. It also lets the connection write audit rows, because neither connection has a
 * {@link ConfirmationGate}.
 */
const ungated: Prepare = (client) =>
  client.query(`${NO_LIMITS}; ${NO_COMPILATION}; ${READ_COMMITTED}; ${UNCONFIRMED_WRITES}`);

function connect(address: DatabaseAddress, log: Logger, pool: PoolSettings): Promise<DataSource> {
  const stream = () => dataSource.makeSocket();
  const dataSource: BoundedDataSource = new BoundedDataSource({
    type: 'postgres',
    synchronize: false,
    installExtensions: false,
    applicationName: 'svc-server',
    poolErrorHandler: (error: Error) => {
      // If the pool is being closed, its connections end on purpose, and none is lost.
      if (poolOf(dataSource)?.ending === false)
        log.warn(`Lost an idle connection: ${error.message}`);
    },
    extra: {
      Client: DriverClient,
      ...address,
      keepAlive: true,
      ...pool,
      stream,
      onConnect: cuttingOff(pool.onConnect),
    },
  });
  return dataSource.initialize();
}

/**
 * Makes the preparation of a connection cut the connection off if it fails. The pool then waits for
 * the end of the connection without a time limit, and a server that has vanished would never send
 * it. The caller, such as the loop of heartbeats, would wait for ever.
 */
function cuttingOff(prepare: Prepare): Prepare {
  return async (client) => {
    try {
      await prepare(client);
    } catch (error) {
      if (client instanceof Client) client.connection.stream.destroy();
      throw error;
    }
  };
}

/** Returns the driver's pool; undefined before it connects and after it is destroyed. */
function poolOf({ driver }: DataSource): Pool | undefined {
  return 'master' in driver && driver.master instanceof Pool ? driver.master : undefined;
}

/**
 * The connections whose server refused a write, because the server has become a standby or
 * read-only.
 */
const readOnly = new WeakSet<PoolClient>();

/**
 * Watches a connection for the error of a server that takes no writes, and then adds it to
 * `readOnly`. The pool calls this function once for each connection.
 */
function noteReadOnly(client: PoolClient): void {
  if (!('connection' in client) || !(client.connection instanceof EventEmitter)) {
    throw new TypeError('The client has no messages of the pg that this project locks');
  }
  client.connection.on('errorMessage', (fault: unknown) => {
    if (isReadOnly(fault)) readOnly.add(client);
  });
}

/**
 * Ends a connection that is returned to the pool with a running statement or an open transaction.
 * Such a connection comes back if the server freezes and the ROLLBACK times out. The next request
 * on the connection would otherwise commit the abandoned work. A connection to a read-only server
 * ends too, so that the next connection reaches a server that takes writes. The pool drops an
 * ending connection.
 */
function discardUnlessUseful(client: PoolClient): void {
  const answered = 'readyForQuery' in client && client.readyForQuery === true;
  if (answered && client.getTransactionStatus() === 'I' && !readOnly.has(client)) return;
  if (client instanceof Client) void client.end();
}
