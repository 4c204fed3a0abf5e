import { GRACE, longestDebt, type Rate, type Decision } from './gcra.js';

/**
 * The time after the booked moment at which an unused booking expires, as a number of intervals of
 * the rate.
 */
export const LAPSE_INTERVALS = 2;

/**
 * The moment that is reserved for a refused client: the rate limit told the client to repeat the
 * request then. The booking expires if the client does not.
 */
export interface Booking {
  /**
   * The request that made the booking: its credential, method and path, as {@link holderText}
   * writes them.
   */
  readonly holder: string;
  /** The booked moment, in milliseconds of the limiter's clock. */
  readonly slot: number;
}

/**
 * The first character of a holder (see {@link holderText}) that marks a request that goes first,
 * such as one that removes a user. A request with this mark need not wait behind the bookings of
 * the same credential.
 */
const FIRST = '!';

/**
 * Writes the holder of a booking, which is the request that made it, as text.
 *
 * @param credential a hash without a dot
 * @param request a hash of the method and the path
 * @param goesFirst true for a request that need not wait behind the bookings of the same credential
 */
export function holderText(credential: string, request: string, goesFirst: boolean): string {
  return `${goesFirst ? FIRST : ''}${credential}.${request}`;
}

/**
 * Returns true if the request of a booking goes first, so that it need not wait behind the bookings
 * of the same credential.
 */
export const goesFirst = (holder: string): boolean => holder.startsWith(FIRST);

/**
 * Returns the credential of a holder. For a request that goes first, it includes the mark {@link
 * FIRST}, so that such bookings are counted separately.
 */
const credentialOf = (holder: string): string => holder.split('.', 1)[0] ?? '';

/**
 * Returns by how many intervals a further booking of a credential is later than the earliest
 * possible moment. It is one interval for every two bookings that the credential already has.
 * Requests that go first can use these intervals, so that no booking has to move.
 */
function roomLeftBy(holder: string, others: readonly Booking[]): number {
  if (goesFirst(holder)) return 0;
  const credential = credentialOf(holder);
  const own = others.filter((booking) => credentialOf(booking.holder) === credential);
  return Math.floor(own.length / 2);
}

/**
 * Returns true if a refused request can get a booking. A bucket has at most as many bookings as the
 * burst of its rate. The bookings of one credential leave some of these places free for requests
 * that go first.
 * @param others the bookings of the bucket by other holders
 * @param places the largest number of bookings that the bucket may have
 */
export function canBook(
  others: readonly Booking[],
  holder: string,
  { burst }: Rate,
  places = burst,
): boolean {
  return others.length < places && others.length + 1 + roomLeftBy(holder, others) <= burst;
}

/**
 * Finds the moment for a new booking. A request that goes first gets the earliest moment at which
 * no other booking has to move. Any other request gets the moment after all other bookings.
 */
function slotAfter(
  others: readonly Booking[],
  holder: string,
  { start, now, rate: { burst, interval } }: { start: number; now: number; rate: Rate },
): number {
  const slots = others.map(({ slot }) => slot).toSorted((one, other) => one - other);
  if (!goesFirst(holder)) {
    const place = others.length + 1 + roomLeftBy(holder, others);
    return Math.max(start + (place - burst) * interval, slots.at(-1) ?? -Infinity);
  }
  const tight = slots.findLastIndex(
    (slot, index) => start + (index + 2) * interval > Math.max(slot, now) + burst * interval,
  );
  return Math.max(start + (tight + 2 - burst) * interval, slots[tight] ?? -Infinity);
}

/**
 * The state of a rate-limit bucket: a theoretical arrival time (GCRA), and the bookings of refused
 * clients.
 */
export interface Bucket {
  /** The theoretical arrival time of GCRA. Only requests that are allowed change it. */
  readonly tat: number;
  readonly bookings: readonly Booking[];
}

/** The facts from which {@link takeOrBook} decides about a request. */
export interface BookingFacts extends Bucket {
  readonly rate: Rate;
  /** The request, written by {@link holderText} as the holder of a booking. */
  readonly holder: string;
  /** The largest number of bookings of the bucket, which is at most the burst. */
  readonly places: number;
}

/** A decision about a request, with the state of the bucket after the request. */
export interface BookedDecision extends Decision, Bucket {}

/**
 * Decides about a request by GCRA with bookings. A refused request books the moment at which it
 * will be allowed even if each earlier booking is used. A booking never lets more requests through
 * than GCRA does, because the repeated request must conform to GCRA too. It only reserves capacity.
 * A request without a booking, or before its booked moment, must conform and leave capacity for the
 * bookings of other clients. A request that goes first may use the capacity that other bookings do
 * not need.
 *
 * Because each decision leaves capacity for the bookings, no booking moves after the client learned
 * of it. With `due = max(slot, now)` this holds for the i-th booking by its slot, before and after
 * each decision: `max(tat, due) + i × interval ≤ due + burst × interval`.
 *
 * @param now the time in milliseconds, by the clock that `tat` and the slots use
 */
export function takeOrBook(
  { tat, bookings, rate, holder, places }: BookingFacts,
  now: number,
): BookedDecision {
  const { burst, interval } = rate;
  const latest = now + longestDebt(rate); // `tat` is later only if the clock was set back
  const start = Math.min(Math.max(tat, now), latest);
  const live = bookings.filter(
    ({ slot }) => slot > now - LAPSE_INTERVALS * interval && slot <= latest,
  );
  const own = live.find((booking) => booking.holder === holder);
  const others = live.filter((booking) => booking.holder !== holder);
  const slot = slotAfter(others, holder, { start, now, rate });
  const isDue = own !== undefined && own.slot <= now + GRACE;
  const next = goesFirst(holder) ? slot : start + (others.length + 1 - burst) * interval;
  // A request may come a little early (GRACE), but only if no booking would have to wait for it.
  const leavesRoom = next <= now + (others.length === 0 ? GRACE : 0);
  const allowed = start + interval <= latest && (isDue || leavesRoom);
  const after = allowed
    ? { tat: start + interval, bookings: others }
    : {
        tat: start,
        bookings:
          own || !canBook(others, holder, rate, places) ? live : [...live, { holder, slot }],
      };
  return { ...decisionAfter(allowed, after, { holder, rate }, now), ...after };
}

/**
 * Returns the decision for the client, from the state of the bucket after the request. If the
 * client has no booking, its wait lasts until all present bookings can be used. The client may have
 * to wait longer, because other clients may come before it.
 */
export function decisionAfter(
  allowed: boolean,
  { tat, bookings }: Bucket,
  request: Pick<BookingFacts, 'holder' | 'rate'>,
  now: number,
): Decision {
  const { burst, interval } = request.rate;
  const own = bookings.find((booking) => booking.holder === request.holder);
  const room = burst * interval - Math.max(tat - now, 0) - bookings.length * interval;
  const slot = own?.slot ?? now + interval - room;
  return {
    allowed,
    remaining: Math.max(0, Math.floor(room / interval)),
    retryAfter: allowed ? 0 : Math.max(1, slot - now),
  };
}
