/** The rate of a client: `burst` requests at once, then one every `interval` milliseconds. */
export interface Rate {
  readonly burst: number;
  readonly interval: number;
}

/** The decision about a request, for its client. */
export interface Decision {
  readonly allowed: boolean;
  /** The number of further requests that would be let through at this moment. */
  readonly remaining: number;
  /** Milliseconds until a request is let through; 0 if this one was. */
  readonly retryAfter: number;
}

/** A decision, with the state of the bucket after it. */
export interface BucketDecision extends Decision {
  readonly tat: number;
}

/**
 * Milliseconds by which a request may come early and still conform: timers fire a little early, and
 * two clocks differ. A request that comes early moves the bucket as far as any other request.
 */
export const GRACE = 5;

/**
 * Returns the longest debt of a bucket in milliseconds. A bucket that is not used for as long
 * equals a new one.
 */
export function longestDebt({ burst, interval }: Rate): number {
  return burst * interval + GRACE;
}

/**
 * The generic cell rate algorithm (ITU-T I.371): a leaky bucket whose state is one number, the
 * theoretical arrival time (TAT) of the next request of a client at exactly the sustained rate.
 *
 *     debt     = max(tat - now, 0)                      the remaining debt
 *     allowed  ⇔ debt + interval ≤ burst × interval     one request more fits in
 *     tat'     = now + debt + interval                  if allowed; else tat' = tat
 *     wait     = debt + interval - burst × interval     until it fits, if it does not
 *
 * In any time t at most `burst + t / interval` requests are let through. A refused request costs
 * its client nothing.
 *
 * @param tat the bucket's state; a value not after `now` is an unused bucket
 * @param now of the same clock, both in whole milliseconds so that the sums are exact
 */
export function gcra(tat: number, now: number, rate: Rate): BucketDecision {
  const { interval } = rate;
  const debt = tat > now ? tat - now : 0;
  const allowed = debt + interval <= longestDebt(rate);
  return allowed
    ? { ...decisionFor(true, debt + interval, rate), tat: now + debt + interval }
    : { ...decisionFor(false, debt, rate), tat };
}

/**
 * Returns a decision for the client, from the bucket's debt after it.
 *
 * @param debt of the bucket after it, in milliseconds
 */
export function decisionFor(allowed: boolean, debt: number, { burst, interval }: Rate): Decision {
  const room = burst * interval - debt;
  return {
    allowed,
    remaining: room > 0 ? Math.floor(room / interval) : 0,
    retryAfter: allowed ? 0 : interval - room,
  };
}
