import { canBook, type Booking } from '#platform/gcra/bookings.js';
import { GRACE, type Decision } from '#platform/gcra/gcra.js';
import { GenerationalMap } from '#platform/gcra/generational-map.js';
import type { BucketRequest } from './rate-limits.repository.js';
import { LONGEST_STATE } from './tiers.js';

/**
 * The largest number of denials in the cache. A further denial is not cached, so that the database
 * decides about the client's next request again.
 */
const MOST = 100_000;

/**
 * The shortest time, in milliseconds, for which the cache refuses clients without a booking after
 * all bookings of a bucket are taken. Another replica may give one of these clients a booking
 * meanwhile. The client does not use it within this time, because no response states a wait of less
 * than a second.
 */
const HOLD = 990;

/**
 * The state of a bucket after a decision of the database. Times are in milliseconds from the moment
 * of that decision. The debt is the time until the bucket is equal to an unused one.
 */
export interface DeniedBucket {
  readonly debt: number;
  /** The bookings of the bucket. Their moments are relative to the decision. */
  readonly bookings: readonly Booking[];
}

/**
 * A denied bucket, with the times at which the database was asked and at which it had answered. The
 * database decided between these two times.
 */
interface Refusal extends DeniedBucket {
  readonly asked: number;
  readonly answered: number;
}

/**
 * Caches denials of the database for as long as the database would certainly deny again. A denial
 * is cached for each client with a booking that is not due yet. If all bookings of a bucket are
 * taken, it is cached for all other clients as well.
 *
 * The database decides at an unknown moment between the question and its answer. The end of a
 * denial is counted from the question, so that the cache does not refuse a client that waited as
 * long as it was told. The wait in a response is counted from the answer, so that it is long
 * enough.
 */
export class DenialCache {
  readonly #known = new GenerationalMap(LONGEST_STATE, () => new Map<string, Refusal>());

  /**
   * Returns the denial of a request if the database would certainly still deny it; undefined
   * otherwise.
   */
  find(request: BucketRequest, now: number): Decision | undefined {
    const known = this.#known.get(request.bucket, now);
    if (!known) return undefined;
    const { holder, rate } = request;
    const { asked, answered, debt, bookings } = known;
    const own = bookings.find((booking) => booking.holder === holder);
    if (own) {
      return now < asked + own.slot - GRACE ? refusal(answered + own.slot - now) : undefined;
    }
    const { burst, interval } = rate;
    if (canBook(bookings, holder, rate)) return undefined;
    const first = Math.min(...bookings.map(({ slot }) => slot));
    if (now >= asked + Math.max(first - GRACE, HOLD)) return undefined;
    return refusal(answered + debt + (bookings.length + 1 - burst) * interval - now);
  }

  /**
   * Caches a denial of the database.
   *
   * @param asked when the database was asked, in milliseconds of the monotonic clock
   * @param answered when it had answered, by the same clock
   */
  remember(bucket: string, refused: DeniedBucket, asked: number, answered: number): void {
    if (this.#known.size >= MOST && this.#known.get(bucket, answered) === undefined) return;
    this.#known.set(bucket, { ...refused, asked, answered }, answered);
  }
}

function refusal(retryAfter: number): Decision {
  return { allowed: false, remaining: 0, retryAfter: Math.max(1, retryAfter) };
}
