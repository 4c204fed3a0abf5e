import type { Logger } from '@nestjs/common';
import type { ThrottlerStorage } from '@nestjs/throttler';
import type { EntityManager } from 'typeorm';
import { reasonOf } from '#platform/database/faults.js';
import type { Rate, Verdict } from './gcra.js';
import { hitRecord, type HitRecord } from './hit-record.js';
import { LocalBuckets } from './local-buckets.js';
import type { RateLimitsRepository } from './rate-limits.repository.js';
import { Refusals } from './refusals.js';
import { within } from './within.js';

/** How long the database may take for a decision, and how often one that is away is asked again, in milliseconds. */
const PATIENCE = 2000;
const ASK_AGAIN_AFTER = 1000;

/** How often, in milliseconds, and how many at once: buckets out of debt are deleted. */
const CLEAR_EVERY = 60_000;
const CLEAR_AT_ONCE = 10_000;

/**
 * The buckets that all replicas share, in the database. A refusal is remembered here until it is over, so that a flood costs
 * the database nothing. While the database cannot decide, this process's own buckets do: a limit is never off.
 */
export class DatabaseBuckets implements ThrottlerStorage {
  readonly #local = new LocalBuckets();
  readonly #refusals = new Refusals();
  #awayUntil: number | undefined;
  #clearAt = 0;

  constructor(
    private readonly manager: EntityManager,
    private readonly repository: RateLimitsRepository,
    private readonly logger: Logger,
  ) {}

  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    tier: string,
  ): Promise<HitRecord> {
    const rate = { burst: limit, interval: ttl / limit };
    const asked = performance.now();
    const refusal = this.#refusals.of(key, asked);
    if (refusal) return hitRecord(refusal, rate);
    const decided = this.#mayAsk(asked) ? await this.#ask(key, rate, asked) : undefined;
    if (!decided) return this.#local.increment(key, ttl, limit, blockDuration, tier);
    if (!decided.allowed) this.#refusals.remember(key, decided, asked, performance.now());
    return hitRecord(decided, rate);
  }

  /** While the database is away, one request in a while finds out whether it is back. */
  #mayAsk(now: number): boolean {
    if (this.#awayUntil === undefined) return true;
    if (now < this.#awayUntil) return false;
    this.#awayUntil = now + PATIENCE + ASK_AGAIN_AFTER;
    return true;
  }

  /** @returns undefined where the database could not decide */
  async #ask(key: string, rate: Rate, now: number): Promise<Verdict | undefined> {
    try {
      const decided = await within(PATIENCE, this.repository.take(this.manager, key, rate));
      if (this.#awayUntil !== undefined) {
        this.#awayUntil = undefined;
        this.logger.log('The database decides about rate limits again');
      }
      this.#clear(now);
      return decided;
    } catch (error) {
      if (this.#awayUntil === undefined) {
        this.logger.warn(
          `Rate limits are this process's own while the database is away: ${reasonOf(error)}`,
        );
      }
      this.#awayUntil = performance.now() + ASK_AGAIN_AFTER;
      return undefined;
    }
  }

  /** Deletes, now and then and behind the scenes, what is out of debt. */
  #clear(now: number): void {
    if (now < this.#clearAt) return;
    this.#clearAt = now + CLEAR_EVERY;
    this.#deleteExpired().catch((error: unknown) => {
      this.logger.warn(`Expired rate limits are still there: ${reasonOf(error)}`);
    });
  }

  async #deleteExpired(): Promise<void> {
    let deleted: number;
    do {
      deleted = await this.repository.deleteExpired(this.manager, CLEAR_AT_ONCE);
    } while (deleted === CLEAR_AT_ONCE);
  }
}
