import type { Logger } from '@nestjs/common';
import type { Clock } from '#platform/clock/clock.js';
import { reasonOf } from '#platform/database/statements/faults.js';

/**
 * The milliseconds between two searches for secrets that are encrypted under the previous root
 * secret. The search is repeated, because a replica with the old configuration may still encrypt
 * secrets until it stops.
 */
const RESEAL_INTERVAL = 300_000;

/**
 * Encrypts the secrets of a queue under the present root secret, if only the previous one decrypts
 * them, so that the operator can remove the previous one.
 */
export class Resealing {
  #dueAt = Number.NEGATIVE_INFINITY;

  /** @param sealAgain does one search */
  constructor(
    private readonly clock: Clock,
    private readonly log: Logger,
    private readonly sealAgain: () => Promise<void>,
  ) {}

  /**
   * Searches at the first call, and then every {@link RESEAL_INTERVAL} milliseconds. If a search
   * fails, the fault is logged, and the next one repeats it. The queue does not wait for it,
   * because the previous root secret still decrypts the secrets.
   */
  async runIfDue(): Promise<void> {
    const now = this.clock.monotonic();
    if (now < this.#dueAt) return;
    this.#dueAt = now + RESEAL_INTERVAL;
    try {
      await this.sealAgain();
    } catch (error) {
      this.log.warn(`Some secrets stay under the previous root secret: ${reasonOf(error)}`);
    }
  }
}
