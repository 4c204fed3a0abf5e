import { GRACE, longestDebt, type Rate, type Verdict } from './gcra.js';

/** How many intervals after its slot a booking lapses that was not used. */
export const LAPSE_INTERVALS = 2;

/** The moment that a refused client was told to come back, which is its own until it lapses. */
export interface Booking {
  /** Which credential booked it, as a hash. */
  readonly holder: string;
  /** The moment that was told, in milliseconds. */
  readonly slot: number;
}

/** A bucket with bookings: what was let through, and what was promised. */
export interface Bucket {
  /** GCRA's theoretical arrival time, which requests that are let through move, and nothing else. */
  readonly tat: number;
  readonly bookings: readonly Booking[];
}

/** The facts that a decision is made of. */
export interface Facts extends Bucket {
  readonly rate: Rate;
  /** Which credential asks, as a hash; clients without one are one holder. */
  readonly holder: string;
  /** How many bookings there may be: the burst at most. */
  readonly places: number;
}

/** A verdict, and the bucket after it. */
export interface Taken extends Verdict, Bucket {}

/**
 * GCRA with bookings. A refused request books the moment at which it conforms although each booking before it is used. A
 * booking never lets more through, since its holder must conform as well. It only keeps others out: a request without a due
 * booking must conform, and leave room for all bookings of others.
 *
 * So no booking is moved once it is told. With `due = max(slot, now)` this holds for the i-th booking by its slot, before
 * and after each decision: `max(tat, due) + i × interval ≤ due + burst × interval`.
 *
 * @param now of the clock of `tat` and the slots
 */
export function takeOrBook({ tat, bookings, rate, holder, places }: Facts, now: number): Taken {
  const { burst, interval } = rate;
  const latest = now + longestDebt(rate); // beyond is what a clock that was set back left behind
  const start = Math.min(Math.max(tat, now), latest);
  const live = bookings.filter(
    ({ slot }) => slot > now - LAPSE_INTERVALS * interval && slot <= latest,
  );
  const own = live.find((booking) => booking.holder === holder);
  const others = live.filter((booking) => booking.holder !== holder);
  const slot = start + (others.length + 1 - burst) * interval;
  const isDue = own !== undefined && own.slot <= now + GRACE;
  // The grace is not lent out where a booking would have to wait for it.
  const leavesRoom = slot <= now + (others.length === 0 ? GRACE : 0);
  const allowed = start + interval <= latest && (isDue || leavesRoom);
  const after = allowed
    ? { tat: start + interval, bookings: others }
    : {
        tat: start,
        bookings: own || others.length >= places ? live : [...live, { holder, slot }],
      };
  return { ...verdictOf(allowed, after, { holder, rate }, now), ...after };
}

/**
 * The verdict that a decision means for its client, from the bucket after it. A client that has no booking is told the end
 * of the queue: a lower bound, since others may come before it.
 */
export function verdictOf(
  allowed: boolean,
  { tat, bookings }: Bucket,
  { holder, rate: { burst, interval } }: Pick<Facts, 'holder' | 'rate'>,
  now: number,
): Verdict {
  const own = bookings.find((booking) => booking.holder === holder);
  const room = burst * interval - Math.max(tat - now, 0) - bookings.length * interval;
  const slot = own?.slot ?? now + interval - room;
  return {
    allowed,
    remaining: Math.max(0, Math.floor(room / interval)),
    retryAfter: allowed ? 0 : Math.max(1, slot - now),
  };
}
