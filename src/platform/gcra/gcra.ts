/**
 * The rate that a client may use: `burst` requests at once, then one every `interval` milliseconds.
 */
export interface Rate {
  readonly burst: number;
  readonly interval: number;
}

/** The decision about a request, with the numbers that the response tells the client. */
export interface Decision {
  readonly allowed: boolean;
  /** The number of further requests that would be allowed at this moment. */
  readonly remaining: number;
  /** The milliseconds until a request is allowed; 0 if this request was allowed. */
  readonly retryAfter: number;
}

/** A decision about a request, and the theoretical arrival time (TAT) of the bucket after it. */
export interface BucketDecision extends Decision {
  readonly tat: number;
}

/**
 * The milliseconds by which a request may come early and still be allowed, because timers fire a
 * little early, and two clocks differ. A request that comes early uses as much of the rate as any
 * other request.
 */
export const GRACE = 5;

/**
 * Returns the longest debt of a bucket in milliseconds. A bucket that was unused for that time is
 * equal to a new bucket, so it need not be kept.
 */
export function longestDebt({ burst, interval }: Rate): number {
  return burst * interval + GRACE;
}

/**
 * Decides about a request by the generic cell rate algorithm (ITU-T I.371), which is a leaky
 * bucket. Its state is one number, the theoretical arrival time (TAT). This is the time of the
 * client's next request if all its requests came at exactly the sustained rate.
 *
 *     debt     = max(tat - now, 0)                      the remaining debt
 *     allowed  ⇔ debt + interval ≤ burst × interval     one more request fits in
 *     tat'     = now + debt + interval                  if allowed; else tat' = tat
 *     wait     = debt + interval - burst × interval     until it fits, if it does not
 *
 * In any time t about `burst + t / interval` requests are allowed at most; a request may come
 * {@link GRACE} milliseconds early. A refused request does not make its client wait longer.
 *
 * @param tat the bucket's state; a value not after `now` is an unused bucket
 * @param now the time of the same clock as `tat`, both in whole milliseconds so that the sums are
 *   exact
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
 * Returns the decision for the client: the remaining requests, and the wait if the request was
 * refused.
 *
 * @param debt the debt of the bucket after the request, in milliseconds
 */
export function decisionFor(allowed: boolean, debt: number, { burst, interval }: Rate): Decision {
  const room = burst * interval - debt;
  return {
    allowed,
    remaining: room > 0 ? Math.floor(room / interval) : 0,
    retryAfter: allowed ? 0 : interval - room,
  };
}
