import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { isTimedOut } from '#platform/database/statements/faults.js';
import { TenantShares } from './tenant-shares.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** The longest wait of a piece of work for a free connection, in milliseconds. */
export const PATIENCE = 10_000;

/**
 * The longest wait for the next part of a response that has begun, in milliseconds. It equals the
 * deadline of a request, which may end the wait earlier.
 */
export const PATIENCE_DURING_RESPONSE = 30_000;

/**
 * The time limit in milliseconds of one statement of costly work, which is a search, list or
 * export.
 */
export const COSTLY_STATEMENT = 3_000;

/**
 * For each kind of work ({@link TenantWork}), how many pieces of it one tenant may run at the same
 * time in a process. The number is smaller if there are too few connections.
 */
const OF_ONE = { costly: 2, bounded: 4 } as const;

/**
 * The pause of a tenant after a piece of work, as a multiple of how long the work took. During the
 * pause, other tenants can use the database.
 */
const REST = { costly: 3, bounded: 1 } as const;

/** The number of connections of each kind in a process. */
export interface ConnectionShares {
  /**
   * The connections of the main pool, which serves authentication and all other work except costly
   * work.
   */
  readonly main: number;
  /**
   * The connections of the main pool that bounded work, which finds or changes some rows by their
   * keys, may use.
   */
  readonly bounded: number;
  /** The connections of the pool for costly work, which is searches, lists and exports. */
  readonly costly: number;
}

/**
 * Divides the connections of a process: a fifth is for costly work, and at most half of the others
 * may do bounded work. So authentication always has at least half of the main pool. Each kind of
 * work has at least one connection.
 */
export function sharesOf(maxConnections: number): ConnectionShares {
  const costly = Math.max(1, Math.floor(maxConnections / 5));
  const main = Math.max(1, maxConnections - costly);
  return { main, bounded: Math.max(1, Math.floor(main / 2)), costly };
}

/**
 * Runs the work that a tenant's admins and identity provider request. Such work grows with the
 * tenant's data, or waits for other work of the same tenant. The work is limited, so that
 * authentication and other tenants get connections under any load of one tenant.
 *
 * - *costly* work reads as much as there is: searches, lists, exports. It has a pool of its own.
 *   Each statement of this pool ends after {@link COSTLY_STATEMENT} milliseconds at the latest, and
 *   uses one process of the database.
 * - *bounded* work finds or changes some rows by their keys, on connections of the main pool. It
 *   never takes more than half of them.
 */
export class TenantWork {
  readonly #costly: TenantShares;
  readonly #bounded: TenantShares;

  /**
   * @param main the pool for authentication and all other work
   * @param pool the pool for costly work
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
   * Runs costly work, such as a search. The work keeps a connection of the database while it runs,
   * so it must not wait for the HTTP client meanwhile.
   *
   * @param patience how long the work waits for a connection, in milliseconds
   * @throws DomainError too_many if a statement takes too long; rate_limited or unavailable if no
   *   connection becomes available in time
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
   * Runs short work, which reads or changes a few rows by their keys. For this work, an
   * organization gets only some of the connections, so that other organizations are not kept
   * waiting.
   *
   * @throws DomainError rate_limited if all connections that the organization may use are taken for
   *   10 s; unavailable if all organizations together take all connections for bounded work that
   *   long
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
   * Runs bounded work in a transaction, which is repeated after a deadlock.
   * @throws DomainError rate_limited or unavailable if no connection becomes available in time
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
 * Returns the largest number of connections that one tenant may use. It is less than the number for
 * all tenants together, so that one tenant cannot use all connections. It is 1 if all tenants
 * together have only one.
 */
function ofOneTenant(most: number, share: number): number {
  return Math.max(1, Math.min(most, share - 1));
}
