import type { Random } from '#platform/clock/random.js';

/** The first and the longest pause between two attempts, in milliseconds. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 600_000;

/** The fraction of a pause that is random, so that replicas do not try again at the same moment. */
const JITTER = 0.25;

/**
 * The pauses after responses by which the receiver refused the notice, such as status 400, in
 * milliseconds. Such a notice is tried again, because a receiver also responds with 400 if its own
 * logout failed (OpenID Connect Back-Channel Logout §2.8).
 */
const AFTER_REFUSALS = [1_000, 10_000, 60_000, 600_000, 3_600_000];

/** The facts about a notice after an attempt to send it failed. */
export interface FailedTry {
  /** The number of attempts so far, one or more. */
  readonly tries: number;
  /**
   * The number of responses so far that refused the notice, such as status 400, including this one;
   * 0 if this attempt failed in another way.
   */
  readonly refusals: number;
  /**
   * The milliseconds until `give_up_at`, after which the service does not try again. It is 24 hours
   * after the notice was queued or first sent; a dead letter that an admin repeats gets 24 hours
   * more.
   */
  readonly left: number;
  /** The pause in seconds that the receiver asked for; undefined if it asked for none. */
  readonly told: number | undefined;
  /** A random number from 0 to 1. */
  readonly chance: number;
  /** True if the request was ended in favor of another client that waited. */
  readonly hasGivenWay?: boolean | undefined;
}

/**
 * Returns the milliseconds until the next attempt; undefined if the notice is given up as a dead
 * letter. A pause that the receiver asks for delays the attempt, but not beyond `give_up_at`: the
 * last attempt is made when `left` is over. If the request was ended in favor of another client, it
 * is repeated at once. Its client may work well, and only a busy machine may have been slow.
 */
export function nextTry(failed: FailedTry): number | undefined {
  const { tries, refusals, left, told, chance } = failed;
  const pause =
    refusals > 0
      ? AFTER_REFUSALS[refusals - 1]
      : Math.min(FIRST_PAUSE * 2 ** Math.min(tries - 1, 16), LONGEST_PAUSE);
  if (pause === undefined || left <= 0) return undefined;
  if (failed.hasGivenWay) return 0;
  const asked = (told ?? 0) * 1000;
  return Math.min(left, Math.max(pause * (1 + JITTER * chance), asked));
}

/**
 * The result of a request by which a notice was sent. `result` describes it in words for an admin.
 */
export interface Answer {
  readonly isDelivered: boolean;
  readonly status: number | undefined;
  readonly result: string;
  /** The pause in seconds that the receiver asked for; undefined if it asked for none. */
  readonly told?: number | undefined;
  /** True if the request was ended in favor of another client that waited. */
  readonly hasGivenWay?: boolean;
  /** True if the receiver refused the notice itself. The default is true for status 400 alone. */
  readonly isRefusal?: boolean | undefined;
}

/** The counts of attempts in a row of a queue, after an attempt to send the row. */
export interface TriedRow {
  readonly tries: number;
  /** The number of responses before this attempt that refused the notice, such as status 400. */
  readonly refusals: number;
}

/**
 * Decides what follows a failed attempt. Returns the words that the row records, and the
 * milliseconds until the next attempt, which are undefined for a dead letter.
 *
 * @param left the milliseconds until `give_up_at`
 */
export function afterFailure(answer: Answer, row: TriedRow, left: number, random: Random) {
  const isRefusal = answer.isRefusal ?? answer.status === 400;
  const refusals = row.refusals + (isRefusal ? 1 : 0);
  const pause = nextTry({
    tries: row.tries,
    refusals: isRefusal ? refusals : 0,
    left,
    told: answer.told,
    chance: random.bytes(1).readUInt8() / 255,
    hasGivenWay: answer.hasGivenWay,
  });
  return { failure: { result: answer.result, refusals }, pause };
}

/**
 * Reads the header Retry-After (RFC 9110 §10.2.3), and returns the seconds from now; undefined if
 * it is missing or invalid.
 *
 * @param now the present time, in milliseconds since 1970
 */
export function retryAfterOf(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,9}$/.test(value)) return Number(value);
  const at = value.endsWith(' GMT') ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000));
}
