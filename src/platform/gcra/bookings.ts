import { GRACE, longestDebt, type Rate, type Decision } from './gcra.js';

/** The number of intervals after its slot at which an unused booking expires. */
export const LAPSE_INTERVALS = 2;

/**
 * A slot that is reserved for a refused client: the moment at which the response told the client to
 * return. It expires if it is not used.
 */
export interface Booking {
  /** The credential, method and path that booked, as {@link holderText} writes them. */
  readonly holder: string;
  /** The time of the slot, in milliseconds of the limiter's clock. */
  readonly slot: number;
}

/** The mark at the beginning of the text of a holder whose request goes first. */
const FIRST = '!';

/**
 * Writes the holder of a booking as text.
 *
 * @param credential a hash without a dot
 * @param request a hash of the method and the path
 * @param goesFirst true for a request that may use the room before the bookings of its own
 *   credential
 */
export function holderText(credential: string, request: string, goesFirst: boolean): string {
  return `${goesFirst ? FIRST : ''}${credential}.${request}`;
}

/** Returns true if a holder is marked as one that goes first. */
export const goesFirst = (holder: string): boolean => holder.startsWith(FIRST);

/**
 * The credential of a holder. The mark of a holder that goes first is a part of it, so that such
 * bookings are counted separately.
 */
const credentialOf = (holder: string): string => holder.split('.', 1)[0] ?? '';

/**
 * Returns the number of intervals by which a further booking of a credential is later: one for
 * every two bookings that the credential has. A holder that goes first can book into this room, so
 * that no booking moves.
 */
function roomLeftBy(holder: string, others: readonly Booking[]): number {
  if (goesFirst(holder)) return 0;
  const credential = credentialOf(holder);
  const own = others.filter((booking) => credentialOf(booking.holder) === credential);
  return Math.floor(own.length / 2);
}

/**
 * Returns true if a refused client can book. A bucket has at most as many bookings as its burst.
 * The bookings of one credential leave room for holders that go first.
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
 * Finds the slot of a new booking. A holder that goes first gets the earliest slot at which no
 * other booking has to move. Any other holder gets the slot after all others.
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

/** The state of a bucket: GCRA's number, and the bookings. */
export interface Bucket {
  /** The theoretical arrival time of GCRA. Only requests that are let through change it. */
  readonly tat: number;
  readonly bookings: readonly Booking[];
}

/** The facts from which a request is decided. */
export interface BookingFacts extends Bucket {
  readonly rate: Rate;
  /** The holder of the request. */
  readonly holder: string;
  /** The greatest number of bookings; at most the burst. */
  readonly places: number;
}

/** A decision, with the state of the bucket after it. */
export interface BookedDecision extends Decision, Bucket {}

/**
 * Decides by GCRA with bookings. A refused request books the moment at which it will conform even
 * if each earlier booking is used. A booking never lets more requests through, since its holder
 * must conform too. It only reserves room: a request without a due booking must conform and leave
 * room for the bookings of other clients. A request that goes first may use the room that other
 * bookings do not need.
 *
 * Therefore no booking moves after the client learned of it. With `due = max(slot, now)` this holds
 * for the i-th booking by its slot, before and after each decision:
 * `max(tat, due) + i × interval ≤ due + burst × interval`.
 *
 * @param now in milliseconds of the clock of `tat` and the slots
 */
export function takeOrBook(
  { tat, bookings, rate, holder, places }: BookingFacts,
  now: number,
): BookedDecision {
  const { burst, interval } = rate;
  const latest = now + longestDebt(rate); // the clock was set back if `tat` is later
  const start = Math.min(Math.max(tat, now), latest);
  const live = bookings.filter(
    ({ slot }) => slot > now - LAPSE_INTERVALS * interval && slot <= latest,
  );
  const own = live.find((booking) => booking.holder === holder);
  const others = live.filter((booking) => booking.holder !== holder);
  const slot = slotAfter(others, holder, { start, now, rate });
  const isDue = own !== undefined && own.slot <= now + GRACE;
  const next = goesFirst(holder) ? slot : start + (others.length + 1 - burst) * interval;
  // There is no grace if a booking would then have to wait.
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
 * Returns the decision for the client, from the bucket after it. A client without a booking gets
 * the end of the queue as its wait: a lower bound, since other clients may come before it.
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
