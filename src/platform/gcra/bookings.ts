import { GRACE, longestDebt, type Rate, type Decision } from './gcra.js';

/** An unused booking lapses so many intervals after its slot. */
export const LAPSE_INTERVALS = 2;

/** A slot that is reserved for a refused client: the moment at which the response told it to return. It lapses if unused. */
export interface Booking {
  /** The hash of the credential that booked. */
  readonly holder: string;
  /** The time of the slot in milliseconds. */
  readonly slot: number;
}

/** A bucket with bookings. */
export interface Bucket {
  /** GCRA's theoretical arrival time. Only requests that are let through move it. */
  readonly tat: number;
  readonly bookings: readonly Booking[];
}

/** The facts for a decision. */
export interface BookingFacts extends Bucket {
  readonly rate: Rate;
  /** The hash of the request's credential. Requests without a credential share one holder. */
  readonly holder: string;
  /** The greatest number of bookings; at most the burst. */
  readonly places: number;
}

/** A decision and the bucket after it. */
export interface BookedDecision extends Decision, Bucket {}

/**
 * Decides by GCRA with bookings. A refused request books the moment at which it will conform even if each earlier booking is
 * used. A booking never lets more requests through, since its holder must conform too. It only reserves room: a request
 * without a due booking must conform and leave room for the bookings of other clients.
 *
 * Therefore no booking moves after the client learned of it. With `due = max(slot, now)` this holds for the i-th booking by
 * its slot, before and after each decision: `max(tat, due) + i × interval ≤ due + burst × interval`.
 *
 * @param now in milliseconds of the clock of `tat` and the slots
 */
export function takeOrBook(
  { tat, bookings, rate, holder, places }: BookingFacts,
  now: number,
): BookedDecision {
  const { burst, interval } = rate;
  const latest = now + longestDebt(rate); // a later value stems from a clock that was set back
  const start = Math.min(Math.max(tat, now), latest);
  const live = bookings.filter(
    ({ slot }) => slot > now - LAPSE_INTERVALS * interval && slot <= latest,
  );
  const own = live.find((booking) => booking.holder === holder);
  const others = live.filter((booking) => booking.holder !== holder);
  const slot = start + (others.length + 1 - burst) * interval;
  const isDue = own !== undefined && own.slot <= now + GRACE;
  // No grace where a booking would have to wait for it.
  const leavesRoom = slot <= now + (others.length === 0 ? GRACE : 0);
  const allowed = start + interval <= latest && (isDue || leavesRoom);
  const after = allowed
    ? { tat: start + interval, bookings: others }
    : {
        tat: start,
        bookings: own || others.length >= places ? live : [...live, { holder, slot }],
      };
  return { ...decisionAfter(allowed, after, { holder, rate }, now), ...after };
}

/**
 * Returns the decision for the client, from the bucket after it. A client without a booking gets the end of the queue as its
 * wait: a lower bound, since other clients may come before it.
 */
export function decisionAfter(
  allowed: boolean,
  { tat, bookings }: Bucket,
  { holder, rate: { burst, interval } }: Pick<BookingFacts, 'holder' | 'rate'>,
  now: number,
): Decision {
  const own = bookings.find((booking) => booking.holder === holder);
  const room = burst * interval - Math.max(tat - now, 0) - bookings.length * interval;
  const slot = own?.slot ?? now + interval - room;
  return {
    allowed,
    remaining: Math.max(0, Math.floor(room / interval)),
    retryAfter: allowed ? 0 : Math.max(1, slot - now),
  };
}
