/** How much a client may ask for: `burst` requests at once, then one every `interval` milliseconds. */
export interface Rate {
  readonly burst: number;
  readonly interval: number;
}

/** What is decided about a request, for its client. */
export interface Verdict {
  readonly allowed: boolean;
  /** How many requests more would be let through at this moment. */
  readonly remaining: number;
  /** Milliseconds until the next one is let through; 0 for a request that was. */
  readonly retryAfter: number;
}

/** A verdict, and where it leaves the bucket. */
export interface Decision extends Verdict {
  readonly tat: number;
}

/**
 * How early a request may come and still count as on time, in milliseconds: timers fire a little early, and two clocks do
 * not run alike. It is lent, not given: a request that comes early moves the bucket as far as any other.
 */
export const GRACE = 5;

/** The longest a bucket can be in debt, in milliseconds: one that nobody touched for as long is as good as new. */
export function longestDebt({ burst, interval }: Rate): number {
  return burst * interval + GRACE;
}

/**
 * The generic cell rate algorithm (ITU-T I.371): a leaky bucket whose whole state is one number, the theoretical arrival
 * time (TAT) of the next request of a client that kept exactly to the sustained rate.
 *
 *     debt     = max(tat - now, 0)                      what is still to leak out
 *     allowed  ⇔ debt + interval ≤ burst × interval     one request more fits in
 *     tat'     = now + debt + interval                  where allowed; else tat' = tat
 *     wait     = debt + interval - burst × interval     until it fits, where it does not
 *
 * So in any time t at most `burst + t / interval` requests are let through, and one that is refused costs its client
 * nothing.
 *
 * @param tat the bucket's state; anything not after `now` (`now` itself, say) is an untouched bucket
 * @param now of the same clock, both in whole milliseconds so that the sums are exact
 */
export function gcra(tat: number, now: number, rate: Rate): Decision {
  const { interval } = rate;
  const debt = tat > now ? tat - now : 0;
  const allowed = debt + interval <= longestDebt(rate);
  return allowed
    ? { ...verdict(true, debt + interval, rate), tat: now + debt + interval }
    : { ...verdict(false, debt, rate), tat };
}

/**
 * What a decision means for the client, wherever it was made.
 *
 * @param debt of the bucket after it, in milliseconds
 */
export function verdict(allowed: boolean, debt: number, { burst, interval }: Rate): Verdict {
  const room = burst * interval - debt;
  return {
    allowed,
    remaining: room > 0 ? Math.floor(room / interval) : 0,
    retryAfter: allowed ? 0 : interval - room,
  };
}
