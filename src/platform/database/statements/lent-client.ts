import type { PoolClient, QueryConfig } from 'pg';
import { poolOf } from './direct-client.js';
import { QueryFailedError, type DataSource } from './typeorm.js';

/** A connection on which statements run: of a transaction, or for one statement alone. */
export interface StatementConnection {
  readonly dataSource: DataSource;
  readonly isTransactionActive: boolean;
  /** Waits for a connection of the pool. */
  connect(): Promise<unknown>;
  /** @throws QueryFailedError as PostgreSQL reports it */
  query(text: string, values: unknown[], structured: true): Promise<{ records: unknown }>;
}

/**
 * A connection of the pool for one statement that stands alone. TypeORM's runner of queries does
 * the same and more, such as transactions. It takes more CPU time, and what it makes for each
 * statement stays until V8 collects its old generation (docs/performance/garbage.md).
 */
export class LentClient implements StatementConnection {
  readonly isTransactionActive = false;
  #client: PoolClient | undefined;

  constructor(readonly dataSource: DataSource) {}

  async connect(): Promise<PoolClient> {
    if (this.#client) return this.#client; // the statement is repeated
    const client = await poolOf(this.dataSource).connect();
    client.on('error', nothing);
    this.#client = client;
    return client;
  }

  async query(query: string | QueryConfig, values: unknown[]): Promise<{ records: unknown[] }> {
    const client = await this.connect();
    this.dataSource.logger.logQuery(query as string, values);
    try {
      const { rows } = await client.query<Record<string, unknown>>(query, values);
      return { records: rows };
    } catch (error) {
      throw new QueryFailedError(query as string, values, error as Error);
    }
  }

  /** Gives the connection back to the pool, which drops it if it is lost. */
  release(): void {
    this.#client?.removeListener('error', nothing);
    this.#client?.release();
    this.#client = undefined;
  }
}

/** The statement that runs on a lost connection fails, so that its error needs no listener. */
function nothing(): void {
  // Without a listener, Node would throw the error and end the process.
}
