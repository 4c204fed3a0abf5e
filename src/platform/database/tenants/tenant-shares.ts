import { systemClock, type Clock } from '#platform/clock/clock.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Semaphore } from './semaphore.js';

/** The longest pause of a tenant after a piece of work, in milliseconds. */
const LONGEST_REST = 100;

/**
 * Limits the concurrent work of each tenant, and of all tenants together, in this process. A tenant
 * is an organization. Work first waits for the limit of its tenant, and then for the limit of all
 * tenants. So a tenant with a long queue never delays other tenants.
 */
export class TenantShares {
  readonly #all: Semaphore;
  readonly #byTenant = new Map<string, Semaphore>();

  /**
   * @param ofAll how many pieces of work may run at the same time, for all tenants together
   * @param ofOne how many pieces of work may run at the same time for one tenant
   * @param rest the pause after a piece of work, as a multiple of its duration. During the pause
   *   the tenant keeps its permit but does no work, so that other tenants can work
   */
  constructor(
    ofAll: number,
    private readonly ofOne: number,
    private readonly rest = 0,
    private readonly clock: Clock = systemClock,
  ) {
    this.#all = new Semaphore(ofAll);
  }

  /**
   * Waits until a tenant may begin a piece of work.
   *
   * @param tenant the id of the organization
   * @param patience how long it may wait, in milliseconds
   * @returns the function that ends the piece of work, to be called once
   * @throws DomainError rate_limited if the tenant's other work takes all permits of the tenant for
   *   that long; unavailable if all tenants together take all permits of the process
   */
  async take(tenant: string, patience: number): Promise<() => void> {
    const own = this.#byTenant.get(tenant) ?? new Semaphore(this.ofOne);
    this.#byTenant.set(tenant, own);
    const until = this.clock.monotonic() + patience;
    const leaveOwn = await own.take(patience);
    if (!leaveOwn) {
      const detail =
        'The organization has too many costly requests in progress. Send one request after the other.';
      throw new DomainError('rate_limited', detail, { retryAfter: 1 });
    }
    const leave = () => {
      leaveOwn();
      if (own.isIdle) this.#byTenant.delete(tenant);
    };
    const leaveAll = await this.#all.take(Math.max(0, until - this.clock.monotonic()));
    if (!leaveAll) {
      leave();
      const detail = 'The service is busy. Try again in a moment.';
      throw new DomainError('unavailable', detail, { retryAfter: 1 });
    }
    const start = this.clock.monotonic();
    return () => {
      // The permit is released in the next turn of the event loop, because by then the response is
      // written, which is part of the work.
      setImmediate(() => {
        leaveAll();
        setTimeout(leave, Math.min(this.rest * (this.clock.monotonic() - start), LONGEST_REST));
      });
    };
  }
}
