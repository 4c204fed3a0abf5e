import type { Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { verdictOf, type Bucket } from '#platform/gcra/bookings.js';
import { Buckets, type Hit } from './buckets.js';
import type { Verdict } from '#platform/gcra/gcra.js';
import { LocalBuckets } from './local-buckets.js';
import type { RateLimitsRepository } from './rate-limits.repository.js';
import { Refusals } from './refusals.js';
import { TurnsByKey } from './turns-by-key.js';
import { within } from './within.js';

/** How long the database may take for a decision, and how often one that is away is asked again, in milliseconds. */
const PATIENCE = 2000;
const ASK_AGAIN_AFTER = 1000;

/** How often, in milliseconds, and how many at once: buckets out of debt are deleted. */
const CLEAR_EVERY = 60_000;
const CLEAR_AT_ONCE = 10_000;

/**
 * The buckets that all replicas share, in the database, with their bookings: each replica lets the holder of a booking in.
 *
 * A refusal is remembered here until it is over, and of one bucket no more requests ask at a time than its burst, so that a
 * flood costs the database nothing. While the database cannot decide, this process's own buckets do, from what it said last:
 * a limit is never off.
 */
export class DatabaseBuckets extends Buckets {
  readonly #local = new LocalBuckets();
  readonly #refusals = new Refusals();
  readonly #turns = new TurnsByKey();
  #awayUntil: number | undefined;
  #clearAt = 0;

  constructor(
    private readonly manager: EntityManager,
    private readonly repository: RateLimitsRepository,
    private readonly logger: Logger,
    private readonly clock: Clock = systemClock,
  ) {
    super();
  }

  override async take(hit: Hit): Promise<Verdict> {
    const { bucket, rate } = hit;
    const holder = hit.holder();
    const refused = () => this.#refusals.of(bucket, holder, rate, this.clock.monotonic());
    return (
      refused() ??
      (await this.#turns.run(
        bucket,
        rate.burst,
        async () =>
          // What those before were told may have settled it.
          refused() ?? (await this.#decide(hit, holder)) ?? this.#local.take(hit),
      ))
    );
  }

  override peek(hit: Hit): Verdict {
    return this.#local.peek(hit);
  }

  override charge(hit: Hit): void {
    this.#local.charge(hit);
    const { bucket, rate } = hit;
    const shareCharge = async (): Promise<void> => {
      const debt = await this.#ask(() => this.repository.charge(this.manager, bucket, rate));
      if (debt !== undefined) this.#local.owe(hit, this.clock.monotonic() + debt);
    };
    void shareCharge();
  }

  /** @returns undefined where the database could not decide */
  async #decide(hit: Hit, holder: string): Promise<Verdict | undefined> {
    const { bucket, rate } = hit;
    const asked = this.clock.monotonic();
    const decided = await this.#ask(() => this.repository.take(this.manager, bucket, holder, rate));
    if (!decided) return undefined;
    const { admitted, debt, bookings } = decided;
    const answered = this.clock.monotonic();
    this.#local.learn(hit, fromNow({ tat: debt, bookings }, answered));
    if (!admitted) this.#refusals.remember(bucket, { debt, bookings }, asked, answered);
    return verdictOf(admitted, { tat: debt, bookings }, { holder, rate }, 0);
  }

  /** While the database is away, one request in a while finds out whether it is back. */
  #mayAsk(now: number): boolean {
    if (this.#awayUntil === undefined) return true;
    if (now < this.#awayUntil) return false;
    this.#awayUntil = now + PATIENCE + ASK_AGAIN_AFTER;
    return true;
  }

  /** @returns undefined where the database could not answer */
  async #ask<T>(question: () => Promise<T>): Promise<T | undefined> {
    const now = this.clock.monotonic();
    if (!this.#mayAsk(now)) return undefined;
    try {
      const answer = await within(PATIENCE, question());
      if (this.#awayUntil !== undefined) {
        this.#awayUntil = undefined;
        this.logger.log('The database decides about rate limits again');
      }
      this.#clear(now);
      return answer;
    } catch (error) {
      if (this.#awayUntil === undefined) {
        this.logger.warn(
          `Rate limits are this process's own while the database is away: ${reasonOf(error)}`,
        );
      }
      this.#awayUntil = this.clock.monotonic() + ASK_AGAIN_AFTER;
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

/** A bucket of the database's, whose times are relative, on this process's clock. */
function fromNow({ tat, bookings }: Bucket, now: number): Bucket {
  return {
    tat: now + tat,
    bookings: bookings.map(({ holder, slot }) => ({ holder, slot: now + slot })),
  };
}
