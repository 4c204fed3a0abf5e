import { hash } from 'node:crypto';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import { systemRandom } from '#platform/clock/random.js';
import { takeOrBook, decisionAfter, type Booking, type Bucket } from '#platform/gcra/bookings.js';
import { Buckets, NO_CREDENTIAL, type Hit } from './buckets.js';
import { gcra, longestDebt, type Decision } from '#platform/gcra/gcra.js';
import { Float64Map } from '#platform/gcra/float64-map.js';
import { GenerationalMap } from '#platform/gcra/generational-map.js';
import { LONGEST_STATE } from './tiers.js';

/**
 * The largest number of buckets in this process that belong to a single client each. A bucket takes
 * at most 32 bytes in each of the two generations of the map.
 */
const MOST_BUCKETS = 1_000_000;

/**
 * The number of shared buckets of a tier. A client that is new after {@link MOST_BUCKETS} was
 * reached gets one of them.
 */
const OVERFLOW_BUCKETS = 4096;

/**
 * The largest number of buckets with bookings. In any further bucket, a refused client is told how
 * long to wait, but no moment is reserved for it.
 */
const MOST_BOOKED = 100_000;

const NO_BOOKINGS: readonly Booking[] = [];

/**
 * The buckets of the rate limits of one process, in its memory.
 *
 * A bucket is dropped only when it is equal to an unused bucket. So a flood of other clients does
 * not clear the state of a client. If a million clients come within a minute, further clients share
 * the overflow buckets at random. In a shared bucket too many requests are refused, and never too
 * few. A client that has a bucket of its own keeps it.
 */
export class LocalBuckets extends Buckets {
  /**
   * The state of each bucket: its theoretical arrival time (TAT) in the rate-limit algorithm GCRA,
   * in milliseconds. The keys of the map are the first 48 bits of hashed bucket keys.
   */
  readonly #tats = new GenerationalMap(LONGEST_STATE, () => new Float64Map());
  /** The bookings of the buckets that have any. */
  readonly #bookings = new GenerationalMap(
    LONGEST_STATE,
    () => new Map<number, readonly Booking[]>(),
  );
  /**
   * A random value in the hash of a client's IP address, so that a client cannot compute which
   * clients share an overflow bucket.
   */
  readonly #salt = systemRandom.bytes(16).toString('hex');

  /** @param most the largest number of buckets that belong to one client each */
  constructor(
    private readonly most = MOST_BUCKETS,
    private readonly clock: Clock = systemClock,
  ) {
    super();
  }

  override take(hit: Hit): Promise<Decision> {
    const now = Math.floor(this.clock.monotonic());
    return Promise.resolve(this.#decide(hit, this.#idOf(hit, now), now));
  }

  /** Leaves no decision to a statement, because these buckets need none. */
  override defer(): undefined {
    return undefined;
  }

  override peek(hit: Hit): Decision {
    const now = Math.floor(this.clock.monotonic());
    const id = this.#idOf(hit, now);
    const tat = this.#tats.get(id, now);
    const { rate } = hit;
    if (tat === undefined) return { allowed: true, remaining: rate.burst, retryAfter: 0 };
    const bookings = this.#bookingsOf(id, now);
    const holder = bookings.length === 0 ? NO_CREDENTIAL : hit.holder();
    const { allowed, retryAfter } = takeOrBook({ tat, bookings, rate, holder, places: 0 }, now);
    const { remaining } = decisionAfter(false, { tat, bookings }, { holder, rate }, now);
    return { allowed, remaining: Math.max(remaining, allowed ? 1 : 0), retryAfter };
  }

  override charge(hit: Hit): void {
    const now = Math.floor(this.clock.monotonic());
    const id = this.#idOf(hit, now);
    const start = Math.max(this.#tats.get(id, now) ?? now, now);
    const latest = now + longestDebt(hit.rate);
    this.#tats.set(id, Math.min(start + hit.rate.interval, latest), now);
  }

  /**
   * Raises the debt of a bucket to its debt in the database, if that is larger. A smaller debt is
   * ignored, because the database may not know the latest requests yet.
   *
   * @param tat the theoretical arrival time in the database, converted to this process's clock
   */
  owe(hit: Hit, tat: number): void {
    const now = Math.floor(this.clock.monotonic());
    const id = this.#idOf(hit, now);
    if (tat > (this.#tats.get(id, now) ?? now)) this.#tats.set(id, tat, now);
  }

  /**
   * Replaces the state of a bucket by the state in the database, whose times are already converted
   * to this process's clock. An older state is ignored, because answers about concurrent requests
   * can come in another order than the decisions. Each admitted request adds an interval, and the
   * way of an answer takes much less than half of one.
   */
  learn(hit: Hit, { tat, bookings }: Bucket): void {
    const now = Math.floor(this.clock.monotonic());
    const id = this.#idOf(hit, now);
    if (tat < (this.#tats.get(id, now) ?? now) - hit.rate.interval / 2) return;
    this.#tats.set(id, tat, now);
    if (bookings.length > 0 || this.#bookingsOf(id, now).length > 0) {
      this.#bookings.set(id, bookings, now);
    }
  }

  #decide({ rate, holder }: Hit, id: number, now: number): Decision {
    const tat = this.#tats.get(id, now) ?? now;
    const bookings = this.#bookingsOf(id, now);
    if (bookings.length === 0) {
      const plain = gcra(tat, now, rate);
      if (plain.allowed) {
        this.#tats.set(id, plain.tat, now);
        return plain;
      }
    }
    const places = bookings.length > 0 || this.#bookings.size < MOST_BOOKED ? rate.burst : 0;
    const taken = takeOrBook({ tat, bookings, rate, holder: holder(), places }, now);
    if (taken.allowed) this.#tats.set(id, taken.tat, now);
    this.#bookings.set(id, taken.bookings, now);
    return taken;
  }

  #bookingsOf(id: number, now: number): readonly Booking[] {
    return this.#bookings.get(id, now) ?? NO_BOOKINGS;
  }

  #idOf({ bucket, tier }: Hit, now: number): number {
    const own = this.#digest(bucket);
    if (this.#tats.get(own, now) !== undefined || this.#tats.size < this.most) return own;
    return this.#digest(`${tier} overflow ${own % OVERFLOW_BUCKETS}`);
  }

  /**
   * Returns 48 bits of a hash as a number above 0. Among a million clients, the probability that
   * two share a bucket is 1 in 500.
   */
  #digest(text: string): number {
    return 1 + Number.parseInt(hash('sha256', this.#salt + text).slice(0, 12), 16);
  }
}
