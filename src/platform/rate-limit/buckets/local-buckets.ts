import { hash } from 'node:crypto';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import { systemRandom } from '#platform/clock/random.js';
import { takeOrBook, verdictOf, type Booking, type Bucket } from '#platform/gcra/bookings.js';
import { Buckets, NO_CREDENTIAL, type Hit } from './buckets.js';
import { gcra, longestDebt, type Verdict } from '#platform/gcra/gcra.js';
import { NumberTable } from '#platform/gcra/number-table.js';
import { ShortMemory } from '#platform/gcra/short-memory.js';
import { LONGEST_STATE } from './tiers.js';

/** How many buckets there may be when a client opens one of its own: 32 bytes each at most, in two generations. */
const MOST_BUCKETS = 1_000_000;

/** How many buckets a tier has for those who come when there is no room. */
const CROWDS = 4096;

/** How many buckets may have bookings. In others a refused client is told the end of the queue. */
const MOST_BOOKED = 100_000;

const NO_BOOKINGS: readonly Booking[] = [];

/**
 * The buckets of one process, in its memory.
 *
 * A bucket is forgotten only when it is out of debt: nobody gets rid of a debt by hiding in a crowd. When there is no room,
 * because a million clients came within half a minute to a minute, newcomers share buckets with each other at random. That
 * refuses too many rather than too few, and whoever has a bucket keeps it.
 */
export class LocalBuckets extends Buckets {
  /** The theoretical arrival times of buckets, by 48 bits of the hash of their keys. */
  readonly #tats = new ShortMemory(LONGEST_STATE, () => new NumberTable());
  /** The bookings of those that have any. */
  readonly #bookings = new ShortMemory(LONGEST_STATE, () => new Map<number, readonly Booking[]>());
  /** Keeps from being worked out who shares a bucket with whom. */
  readonly #salt = systemRandom.bytes(16).toString('hex');

  /** @param most how many clients have a bucket of their own */
  constructor(
    private readonly most = MOST_BUCKETS,
    private readonly clock: Clock = systemClock,
  ) {
    super();
  }

  override take(hit: Hit): Promise<Verdict> {
    const now = Math.floor(this.clock.monotonic());
    return Promise.resolve(this.#decide(hit, this.#idOf(hit, now), now));
  }

  override peek(hit: Hit): Verdict {
    const now = Math.floor(this.clock.monotonic());
    const id = this.#idOf(hit, now);
    const tat = this.#tats.get(id, now);
    const { rate } = hit;
    if (tat === undefined) return { allowed: true, remaining: rate.burst, retryAfter: 0 };
    const bookings = this.#bookingsOf(id, now);
    const holder = bookings.length === 0 ? NO_CREDENTIAL : hit.holder();
    const { allowed, retryAfter } = takeOrBook({ tat, bookings, rate, holder, places: 0 }, now);
    const { remaining } = verdictOf(false, { tat, bookings }, { holder, rate }, now);
    return { allowed, remaining: Math.max(remaining, allowed ? 1 : 0), retryAfter };
  }

  override charge(hit: Hit): void {
    const now = Math.floor(this.clock.monotonic());
    const id = this.#idOf(hit, now);
    const start = Math.max(this.#tats.get(id, now) ?? now, now);
    const latest = now + longestDebt(hit.rate);
    this.#tats.set(id, Math.min(start + hit.rate.interval, latest), now);
  }

  /** Takes over the debt that the database knows of a bucket, where it is the larger one: it may not know the latest charges. */
  owe(hit: Hit, tat: number): void {
    const now = Math.floor(this.clock.monotonic());
    const id = this.#idOf(hit, now);
    if (tat > (this.#tats.get(id, now) ?? now)) this.#tats.set(id, tat, now);
  }

  /** Takes over what the database said of a bucket. @param bucket by this process's clock */
  learn(hit: Hit, { tat, bookings }: Bucket): void {
    const now = Math.floor(this.clock.monotonic());
    const id = this.#idOf(hit, now);
    this.#tats.set(id, tat, now);
    if (bookings.length > 0 || this.#bookingsOf(id, now).length > 0) {
      this.#bookings.set(id, bookings, now);
    }
  }

  #decide({ rate, holder }: Hit, id: number, now: number): Verdict {
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
    return this.#digest(`${tier} crowd ${own % CROWDS}`);
  }

  /** Above 0. Two of a million have the same once in 500 times; then they share a bucket. */
  #digest(text: string): number {
    return 1 + Number.parseInt(hash('sha256', this.#salt + text).slice(0, 12), 16);
  }
}
