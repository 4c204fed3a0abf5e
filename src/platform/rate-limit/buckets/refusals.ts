import type { Booking } from '#platform/gcra/bookings.js';
import { GRACE, type Rate, type Verdict } from '#platform/gcra/gcra.js';
import { ShortMemory } from '#platform/gcra/short-memory.js';
import { LONGEST_STATE } from './tiers.js';

/** Beyond this many the rest is not remembered: the database refuses them again. */
const MOST = 100_000;

/**
 * How long, in milliseconds, a client without a booking is refused without asking, when all places are held. A place that was
 * booked meanwhile at another replica is not due before: a client is never told less than a second.
 */
const HOLD = 990;

/** The bucket as the database left it, in milliseconds from the moment of its decision. */
export interface RefusedBucket {
  readonly debt: number;
  /** Their slots are relative, too. */
  readonly bookings: readonly Booking[];
}

/** Between these two moments the database decided. */
interface Refusal extends RefusedBucket {
  readonly asked: number;
  readonly answered: number;
}

/**
 * What the database refused, until it might decide otherwise: a client whose booking is not due yet, and every client without
 * a booking while all places are held.
 *
 * The database decided somewhere between the question and its answer. Counted from the question, a refusal ends here no later
 * than there: no client that waited as long as any replica said is refused from memory. Counted from the answer, a wait that
 * is promised is long enough.
 */
export class Refusals {
  readonly #known = new ShortMemory(LONGEST_STATE, () => new Map<string, Refusal>());

  /** The refusal of a holder that certainly still holds. */
  of(bucket: string, holder: string, rate: Rate, now: number): Verdict | undefined {
    const known = this.#known.get(bucket, now);
    if (!known) return undefined;
    const { asked, answered, debt, bookings } = known;
    const own = bookings.find((booking) => booking.holder === holder);
    if (own) {
      return now < asked + own.slot - GRACE ? refusal(answered + own.slot - now) : undefined;
    }
    const { burst, interval } = rate;
    if (bookings.length < burst) return undefined; // it may book
    const first = Math.min(...bookings.map(({ slot }) => slot));
    if (now >= asked + Math.max(first - GRACE, HOLD)) return undefined;
    return refusal(answered + debt + (bookings.length + 1 - burst) * interval - now);
  }

  /**
   * @param asked when the database was asked
   * @param answered when it had answered
   */
  remember(bucket: string, refused: RefusedBucket, asked: number, answered: number): void {
    if (this.#known.size >= MOST && this.#known.get(bucket, answered) === undefined) return;
    this.#known.set(bucket, { ...refused, asked, answered }, answered);
  }
}

function refusal(retryAfter: number): Verdict {
  return { allowed: false, remaining: 0, retryAfter: Math.max(1, retryAfter) };
}
