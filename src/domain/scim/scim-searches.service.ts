import { Inject, Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { CONFIG, type Config } from '#platform/config/config.js';
import { isTimedOut } from '#platform/database/faults.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { limitStatements } from './scim-search.repository.js';
import { Turns } from './turns.js';

/** Costly searches of one organization at a time, in this process. */
const MOST_OF_ONE = 2;
/** How long one statement of a costly search may take, and how long such a search waits for its turn; milliseconds. */
const LONGEST = 2_000;
const PATIENCE = 5_000;

/**
 * Where searches are run. One that no index serves reads all users or groups of its organization: of those an organization
 * has two at a time, all together have less than half of the connections, and none takes long, so that whatever one
 * identity provider asks for, there is a connection for everybody else.
 */
@Injectable()
export class ScimSearches {
  readonly #all: Turns;
  readonly #byOrganization = new Map<string, Turns>();

  constructor(
    private readonly dataSource: DataSource,
    @Inject(CONFIG) { database }: Pick<Config, 'database'>,
  ) {
    this.#all = new Turns(Math.max(1, Math.ceil(database.maxConnections / 2) - 1));
  }

  /**
   * @param isCostly whether no index serves the search
   * @throws DomainError too_many when it takes too long; rate_limited or unavailable when its turn does not come
   */
  async run<Found>(
    orgId: string,
    isCostly: boolean,
    search: (tx: EntityManager) => Promise<Found>,
  ): Promise<Found> {
    if (!isCostly) return search(this.dataSource.manager);
    const giveBack = await this.#turn(orgId);
    try {
      return await this.dataSource.transaction(async (tx) => {
        await limitStatements(tx, LONGEST);
        return search(tx);
      });
    } catch (error) {
      if (!isTimedOut(error)) throw error;
      throw new DomainError('too_many', 'The filter asks for too much. Ask for less at a time.', {
        cause: error,
      });
    } finally {
      giveBack();
    }
  }

  /** The organization's own turn first: it has no more than its share in the queue for the others. */
  async #turn(orgId: string): Promise<() => void> {
    const ours = this.#byOrganization.get(orgId) ?? new Turns(MOST_OF_ONE);
    this.#byOrganization.set(orgId, ours);
    const until = performance.now() + PATIENCE;
    const leaveOurs = await ours.take(PATIENCE);
    if (!leaveOurs) {
      const detail = 'There are too many searches of the organization. Ask one after the other.';
      throw new DomainError('rate_limited', detail, { retryAfter: 1 });
    }
    const leave = () => {
      leaveOurs();
      if (ours.isIdle) this.#byOrganization.delete(orgId);
    };
    const leaveAll = await this.#all.take(Math.max(0, until - performance.now()));
    if (!leaveAll) {
      leave();
      throw new DomainError('unavailable', 'Too many search at the moment. Try again.', {
        retryAfter: 1,
      });
    }
    return () => {
      leaveAll();
      leave();
    };
  }
}
