import type { Logger } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { QueryBatcher } from '#platform/database/statements/query-batcher.js';
import { decisionAfter, type Bucket } from '#platform/gcra/bookings.js';
import { Buckets, type DeferredHit, type Hit } from './buckets.js';
import type { Decision, Rate } from '#platform/gcra/gcra.js';
import { LocalBuckets } from './local-buckets.js';
import type { BucketRequest, DecidedRow, RateLimitsRepository } from './rate-limits.repository.js';
import { DenialCache } from './denial-cache.js';
import { KeyedSemaphore } from './keyed-semaphore.js';

/**
 * The milliseconds that the database may take for a decision (`PATIENCE`). While the database
 * cannot be reached, it is asked again every `ASK_AGAIN_AFTER` milliseconds.
 */
const PATIENCE = 2000;
const ASK_AGAIN_AFTER = 1000;

/**
 * Buckets without a debt, which are equal to new ones, are deleted every `CLEAR_EVERY`
 * milliseconds. One statement deletes at most `CLEAR_AT_ONCE` of them, so that it is short.
 */
const CLEAR_EVERY = 60_000;
const CLEAR_AT_ONCE = 10_000;

/**
 * The buckets of the rate limits that all replicas share in the database, with the bookings of
 * refused clients.
 *
 * A flood of refused requests must not load the database. So a denial is cached until it is over,
 * and the number of concurrent statements for one bucket is at most its burst. While the database
 * cannot be reached, buckets in the memory of this process decide, so that a limit is never off.
 * The buckets in memory begin with the last states that the database returned.
 */
export class DatabaseBuckets extends Buckets {
  readonly #local: LocalBuckets;
  readonly #denialCache = new DenialCache();
  readonly #turns = new KeyedSemaphore();
  /**
   * The buckets with a request whose decision is left to another statement. The promise resolves
   * when that statement has ended; it is undefined before the statement begins.
   */
  readonly #deferred = new Map<string, Promise<void> | undefined>();
  readonly #decisions: QueryBatcher<BucketRequest, DecidedRow | Error>;
  #awayUntil: number | undefined;
  #clearAt = 0;

  constructor(
    private readonly manager: EntityManager,
    private readonly repository: RateLimitsRepository,
    private readonly logger: Logger,
    private readonly clock: Clock = systemClock,
  ) {
    super();
    this.#local = new LocalBuckets(undefined, clock);
    this.#decisions = new QueryBatcher((requests) => this.#decideTogether(requests));
  }

  override async take(hit: Hit): Promise<Decision> {
    const request = new AskedHit(hit);
    const denied = () => this.#denialCache.find(request, this.clock.monotonic());
    return (
      denied() ??
      (await this.#turns.run(
        request.bucket,
        request.rate.burst,
        async (running) =>
          // The cache is asked again, because an earlier request of the same bucket may have been
          // denied while this one waited.
          denied() ?? (await this.#decide(hit, request, running === 1)) ?? this.#local.take(hit),
      ))
    );
  }

  override defer(hit: Hit): DeferredHit | undefined {
    const { bucket } = hit;
    const isBusy = this.#deferred.has(bucket) || this.#turns.isRunning(bucket);
    if (isBusy || this.#awayUntil !== undefined) return undefined;
    const { allowed, remaining } = this.#local.peek(hit);
    if (!allowed) return undefined;
    // The peek reads the last state of the bucket that this process learned. The cache of denials
    // is asked too, because it lasts longer for clients without a booking.
    if (this.#denialCache.find(new AskedHit(hit), this.clock.monotonic())) return undefined;
    this.#deferred.set(bucket, undefined);
    const { promise, resolve } = Promise.withResolvers<void>();
    let isOver = false;
    const begin = () => {
      // A request of the bucket may wait in a shared statement by now. It would wait there for the
      // lock of the statement that begins, together with requests of other buckets.
      if (isOver || this.#turns.isRunning(bucket)) return false;
      this.#deferred.set(bucket, promise);
      return true;
    };
    const end = () => {
      if (!isOver) this.#deferred.delete(bucket);
      isOver = true;
      resolve();
    };
    const admit = (debt: number): Decision => {
      end();
      this.#local.learn(hit, fromNow({ tat: debt, bookings: [] }, this.clock.monotonic()));
      this.#clear(this.clock.monotonic());
      return decisionAfter(true, { tat: debt, bookings: [] }, new AskedHit(hit), 0);
    };
    return { remaining, admit, begin, end };
  }

  override peek(hit: Hit): Decision {
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

  /**
   * Asks the database for a decision about a request.
   *
   * @param isOnly true if this process decides about no other request of the bucket now
   * @returns undefined if the database could not decide, so that the process decides alone
   */
  async #decide(hit: Hit, request: BucketRequest, isOnly: boolean): Promise<Decision | undefined> {
    if (!(await this.#isFree(hit.bucket))) return undefined;
    const asked = this.clock.monotonic();
    const decided = await this.#ask(() => {
      const answer = this.#row(request, isOnly);
      hit.whileAsked?.();
      return answer;
    });
    if (!decided) return undefined;
    const { admitted, debt, bookings } = decided;
    const answered = this.clock.monotonic();
    this.#local.learn(hit, fromNow({ tat: debt, bookings }, answered));
    if (!admitted) this.#denialCache.remember(hit.bucket, { debt, bookings }, asked, answered);
    return decisionAfter(admitted, { tat: debt, bookings }, request, 0);
  }

  /**
   * Waits for the statement to which the decision about another request of the bucket is left. That
   * statement does more than to decide, and locks the row of the bucket meanwhile. A request that
   * waited for the lock in a shared statement would delay the requests of other buckets.
   *
   * @returns false if the statement takes so long that the process must decide alone
   */
  async #isFree(bucket: string): Promise<boolean> {
    const statement = this.#deferred.get(bucket);
    if (!statement || this.#awayUntil !== undefined) return true;
    return withTimeout(
      PATIENCE,
      statement.then(() => true),
    ).catch(() => false);
  }

  /**
   * Returns the decision of the database about a request. If it is the only one of its bucket, it
   * shares a statement with requests of other buckets. Otherwise it has a statement of its own,
   * which waits for the lock of the row. So only requests of one bucket wait for one another.
   */
  async #row(request: BucketRequest, isOnly: boolean): Promise<DecidedRow> {
    if (!isOnly) return (await this.repository.take(this.manager, [request]))[0] as DecidedRow;
    const row = await this.#decisions.load(request);
    if (row instanceof Error) throw row;
    return row;
  }

  /**
   * Decides about requests of different buckets in one statement. An error is returned for each of
   * them, because the batcher would repeat a statement that throws, which might count a request
   * twice.
   */
  async #decideTogether(requests: readonly BucketRequest[]): Promise<(DecidedRow | Error)[]> {
    try {
      // A statement that hangs must not keep others from beginning for longer than its requests
      // wait for it.
      return await withTimeout(PATIENCE, this.repository.take(this.manager, requests));
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error));
      return requests.map(() => reason);
    }
  }

  /**
   * Returns true if the database may be asked now. While it cannot be reached, only one request in
   * each interval asks it.
   */
  #mayAsk(now: number): boolean {
    if (this.#awayUntil === undefined) return true;
    if (now < this.#awayUntil) return false;
    this.#awayUntil = now + PATIENCE + ASK_AGAIN_AFTER;
    return true;
  }

  /**
   * Runs a query of the database, unless the database could not be reached a moment ago.
   * @returns undefined if the query was not run, failed, or had no result in time
   */
  async #ask<T>(question: () => Promise<T>): Promise<T | undefined> {
    const now = this.clock.monotonic();
    if (!this.#mayAsk(now)) return undefined;
    try {
      const answer = await withTimeout(PATIENCE, question());
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

  /**
   * Starts the deletion of buckets without a debt, if `CLEAR_EVERY` has passed. No request waits
   * for it.
   */
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

/**
 * A request as the database decides about it. The text of its holder has two hashes, and is made
 * when it is read first, because only a bucket that refuses requests needs it.
 */
class AskedHit implements BucketRequest {
  readonly bucket: string;
  readonly rate: Rate;
  #holder: string | undefined;

  constructor(private readonly hit: Hit) {
    this.bucket = hit.bucket;
    this.rate = hit.rate;
  }

  get holder(): string {
    return (this.#holder ??= this.hit.holder());
  }
}

/**
 * Converts the state of a bucket in the database, whose times are relative to the present, to times
 * of this process's clock.
 */
function fromNow({ tat, bookings }: Bucket, now: number): Bucket {
  return {
    tat: now + tat,
    bookings: bookings.map(({ holder, slot }) => ({ holder, slot: now + slot })),
  };
}

/**
 * Waits for an answer, for a number of milliseconds at most. An answer that comes later is ignored.
 *
 * @throws Error if no answer came in time
 */
async function withTimeout<T>(milliseconds: number, answer: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new Error(`no answer within ${milliseconds} ms`));
  }, milliseconds);
  try {
    return await Promise.race([answer, promise]);
  } finally {
    clearTimeout(timer);
  }
}
