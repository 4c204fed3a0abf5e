import type { Logger } from '@nestjs/common';
import { Client, Pool, type ClientBase, type PoolClient, type PoolConfig } from 'pg';
import { DataSource } from 'typeorm';

/** Where the database is: a `postgres://` URL, or the embedded server's Unix socket. */
export type DatabaseAddress =
  | { readonly connectionString: string }
  | Readonly<Record<'host' | 'user' | 'database', string> & { port: number }>;

/** How long anything may take, in milliseconds: no request waits for ever for a database that hangs. */
export const TIMEOUTS = {
  connectionTimeoutMillis: 5_000,
  lock_timeout: 5_000,
  statement_timeout: 10_000,
  /** The client's own limit, above the server's: it is what saves us from a server that is frozen. */
  query_timeout: 12_000,
  idle_in_transaction_session_timeout: 15_000,
} as const satisfies PoolConfig;

type Timeouts = Readonly<Record<keyof typeof TIMEOUTS, number>>;

/** Prepares a new connection before it serves; the pool waits for it. */
type Prepare = (client: ClientBase) => Promise<unknown>;
type PoolSettings = Omit<PoolConfig, 'onConnect'> & { readonly onConnect?: Prepare };

/**
 * Opens the pool that serves requests.
 *
 * @throws whatever the driver says when the database cannot be reached: nothing is tried twice here
 */
export async function openPool(
  address: DatabaseAddress,
  log: Logger,
  maxConnections: number,
  timeouts: Timeouts = TIMEOUTS,
  onConnect?: Prepare,
): Promise<DataSource> {
  const settings = onConnect ? { ...timeouts, onConnect } : timeouts;
  const dataSource = await connect(address, log, { ...settings, max: maxConnections });
  const pool = poolOf(dataSource);
  if (!pool) throw new TypeError('The driver has no pool of the pg that this project locks');
  pool.on('release', (_error, client) => discardUnlessIdle(client));
  return dataSource;
}

/**
 * Opens the pool of the costly work. Its limits are set by statements and not by the start of the connection, since PgBouncer
 * passes no start-up parameters on. A statement uses one process of the database and is not compiled, which takes longer than it
 * saves.
 *
 * @param statementTimeout in milliseconds
 * @throws the fault of the driver when the database cannot be reached
 */
export async function openCostlyPool(
  address: DatabaseAddress,
  log: Logger,
  maxConnections: number,
  statementTimeout: number,
): Promise<DataSource> {
  const limits = `SET statement_timeout = ${statementTimeout}; SET jit = off; SET max_parallel_workers_per_gather = 0`;
  return openPool(address, log, maxConnections, TIMEOUTS, (client) => client.query(limits));
}

/** Opens one connection that may wait as long as a migration takes. */
export function openMigrationConnection(
  address: DatabaseAddress,
  log: Logger,
): Promise<DataSource> {
  const { connectionTimeoutMillis } = TIMEOUTS;
  return connect(address, log, { connectionTimeoutMillis, max: 1 });
}

function connect(address: DatabaseAddress, log: Logger, pool: PoolSettings): Promise<DataSource> {
  const dataSource: DataSource = new DataSource({
    type: 'postgres',
    synchronize: false,
    installExtensions: false,
    applicationName: 'svc-server',
    poolErrorHandler: (error: Error) => {
      // Connections that end because we are leaving are not lost.
      if (poolOf(dataSource)?.ending === false)
        log.warn(`Lost an idle connection: ${error.message}`);
    },
    extra: { ...address, keepAlive: true, ...pool },
  });
  return dataSource.initialize();
}

/** The driver's pool; none before it connects and after it is destroyed. */
function poolOf({ driver }: DataSource): Pool | undefined {
  return 'master' in driver && driver.master instanceof Pool ? driver.master : undefined;
}

/**
 * Keeps a connection out of the pool that comes back with a statement still running or a transaction still open, as
 * happens when the server froze and even the ROLLBACK timed out: the next to borrow it would commit what this one
 * gave up, or believe committed what never was. The pool drops a connection that is ending.
 */
function discardUnlessIdle(client: PoolClient): void {
  const answered = 'readyForQuery' in client && client.readyForQuery === true;
  if (answered && client.getTransactionStatus() === 'I') return;
  if (client instanceof Client) void client.end();
}
