import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { isTimedOut } from '#platform/database/statements/faults.js';
import { TenantShares } from './tenant-shares.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** The longest wait of a piece of work for its share, in milliseconds. */
const PATIENCE = 10_000;

/**
 * The longest wait for the next part of a response that has begun, in milliseconds. It equals the
 * deadline of a request, which may end the wait earlier.
 */
export const PATIENCE_DURING_RESPONSE = 30_000;

/** The time limit of a statement of costly work, in milliseconds. */
export const COSTLY_STATEMENT = 3_000;

/**
 * The greatest number of concurrent pieces of work of one tenant in a process; fewer if the share
 * is small.
 */
const OF_ONE = { costly: 2, bounded: 4 } as const;

/** The pause of a tenant's permit after a piece of work, as a multiple of its duration. */
const REST = { costly: 3, bounded: 1 } as const;

/** The number of connections of each kind in a process. */
export interface ConnectionShares {
  /**
   * The connections of the main pool, which serves all work but the costly one, above all
   * authentication.
   */
  readonly main: number;
  /** The connections of the main pool that the bounded work of tenants may use. */
  readonly bounded: number;
  /** The connections of the pool for costly work. */
  readonly costly: number;
}

/**
 * Divides the connections of a process: a fifth is for costly work, and half of the others may do
 * the bounded work of tenants. So authentication always has at least half of the main pool. Each
 * share has at least one.
 */
export function sharesOf(maxConnections: number): ConnectionShares {
  const costly = Math.max(1, Math.floor(maxConnections / 5));
  const main = Math.max(1, maxConnections - costly);
  return { main, bounded: Math.max(1, Math.floor(main / 2)), costly };
}

/**
 * Runs the work of a tenant's identity provider and admins. Such work grows with the tenant's data,
 * or waits for other work of the tenant. Limits make sure that authentication and other tenants get
 * connections under any load of one tenant.
 *
 * - *costly* work reads as much as there is: searches, lists, exports. It has a pool of its own,
 *   whose statements end after {@link COSTLY_STATEMENT} milliseconds and use one process of the
 *   database each.
 * - *bounded* work finds or changes some rows by their keys, on the connections of the main pool,
 *   of which it never takes more than half.
 */
export class TenantWork {
  readonly #costly: TenantShares;
  readonly #bounded: TenantShares;

  /**
   * @param main the pool for authentication and all other work
   * @param pool the pool for costly work, with as many connections as its share
   */
  constructor(
    private readonly main: DataSource,
    private readonly pool: DataSource,
    { costly, bounded }: ConnectionShares,
  ) {
    this.#costly = new TenantShares(costly, ofOneTenant(OF_ONE.costly, costly), REST.costly);
    this.#bounded = new TenantShares(bounded, ofOneTenant(OF_ONE.bounded, bounded), REST.bounded);
  }

  /**
   * Runs costly work. It holds a connection while it runs, so that it must not wait for a client.
   *
   * @param patience how long it waits for its share, in milliseconds
   * @throws DomainError too_many if a statement takes too long; rate_limited or unavailable if no
   *   connection of the share becomes available in time
   */
  async costly<Found>(
    tenant: string,
    work: (tx: EntityManager) => Promise<Found>,
    patience: number = PATIENCE,
  ): Promise<Found> {
    const leave = await this.#costly.take(tenant, patience);
    try {
      return await work(this.pool.manager);
    } catch (error) {
      if (!isTimedOut(error, COSTLY_STATEMENT)) throw error;
      const detail = 'The request takes too long to compute. Request less at a time.';
      throw new DomainError('too_many', detail, { cause: error });
    } finally {
      leave();
    }
  }

  /**
   * Finds or changes some rows.
   * @throws DomainError rate_limited or unavailable if no connection of the share becomes available
   *   in time
   */
  async bounded<Done>(tenant: string, work: (tx: EntityManager) => Promise<Done>): Promise<Done> {
    const leave = await this.#bounded.take(tenant, PATIENCE);
    try {
      return await work(this.main.manager);
    } finally {
      leave();
    }
  }

  /**
   * Changes some rows in a transaction, which is repeated after a deadlock.
   * @throws DomainError rate_limited or unavailable if no connection of the share becomes available
   *   in time
   */
  async transact<Done>(tenant: string, work: (tx: EntityManager) => Promise<Done>): Promise<Done> {
    const leave = await this.#bounded.take(tenant, PATIENCE);
    try {
      return await withTransactionRetry(this.main, work);
    } finally {
      leave();
    }
  }
}

/**
 * Returns the most connections that one tenant may use: fewer than the whole share, unless the
 * share is one connection.
 */
function ofOneTenant(most: number, share: number): number {
  return Math.max(1, Math.min(most, share - 1));
}
