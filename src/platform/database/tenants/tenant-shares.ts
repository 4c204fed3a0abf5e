import { systemClock, type Clock } from '#platform/clock/clock.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Semaphore } from './semaphore.js';

/** In milliseconds. */
const LONGEST_REST = 100;

/**
 * Two limits for the work of tenants: how many pieces one tenant has under way in this process, and how many all tenants have
 * together. A tenant waits for its own limit first, so that a long queue of one tenant is never before the others.
 */
export class TenantShares {
  readonly #all: Semaphore;
  readonly #byTenant = new Map<string, Semaphore>();

  /**
   * @param rest how long a permit of a tenant rests after a piece of work, as a multiple of the time that piece took: one tenant
   * leaves the process, and the database, time for the others
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
   * @param tenant the id of the organization
   * @param patience how long it may wait, in milliseconds
   * @returns the function that ends the piece of work, to be called once
   * @throws DomainError rate_limited when the tenant's own work is in the way, unavailable when that of others is
   */
  async take(tenant: string, patience: number): Promise<() => void> {
    const own = this.#byTenant.get(tenant) ?? new Semaphore(this.ofOne);
    this.#byTenant.set(tenant, own);
    const until = this.clock.monotonic() + patience;
    const leaveOwn = await own.take(patience);
    if (!leaveOwn) {
      const detail =
        'The organization asks for too much at once. Send one request after the other.';
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
      // By the next turn of the event loop the answer is written, which is part of the work.
      setImmediate(() => {
        leaveAll();
        setTimeout(leave, Math.min(this.rest * (this.clock.monotonic() - start), LONGEST_REST));
      });
    };
  }
}
