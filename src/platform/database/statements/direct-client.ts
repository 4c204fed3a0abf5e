import { Client, Pool } from 'pg';
import { directPoolOf } from './pooled.js';
import type { DataSource } from './typeorm.js';

/** The milliseconds for which the end of a connection waits for the server. */
const END_WITHIN = 1_000;

/**
 * Returns the pool of a data source.
 * @throws TypeError if it is not a `Pool` of the installed package `pg`
 */
export function poolOf({ driver }: DataSource): Pool {
  const pool = 'master' in driver ? driver.master : undefined;
  if (pool instanceof Pool) return pool;
  throw new TypeError('The driver has no pool of the pg that this project locks');
}

/**
 * Makes a client that connects as the connections of the pool do, also if the URL of the database
 * names several hosts. It bypasses a pooler in transaction mode, so that it has a session of
 * PostgreSQL itself.
 */
export function newDirectClient(dataSource: DataSource): Client {
  const { options } = poolOf(directPoolOf(dataSource));
  // The pool makes its connections with the same class of clients.
  const Driver = (options.Client ?? Client) as typeof Client;
  return new Driver(options);
}

/**
 * Ends a connection without waiting for the server. If the server does not close the connection
 * within a second, the socket is destroyed, so that it does not keep the process running.
 */
export function endClient(client: Client): void {
  const cutOff = setTimeout(() => client.connection.stream.destroy(), END_WITHIN);
  // The open socket keeps the process running until then; the timer alone need not.
  cutOff.unref();
  void client
    .end()
    .catch(() => undefined)
    .finally(() => clearTimeout(cutOff));
}
