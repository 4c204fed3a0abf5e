import type { Random } from '#platform/clock/random.js';

/** The pauses between two tries, in milliseconds: the first one, and the longest one. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 600_000;

/** The share of a pause that is random, so that replicas do not try again at the same moment. */
const JITTER = 0.25;

/**
 * The pauses after answers of 400, in milliseconds. A receiver answers 400 also if its own logout
 * failed (OpenID Connect Back-Channel Logout §2.8).
 */
const AFTER_REFUSALS = [1_000, 10_000, 60_000, 600_000, 3_600_000];

/** The facts about a notice after a try that failed. */
export interface FailedTry {
  /** The number of tries, one or more. */
  readonly tries: number;
  /** The number of answers 400, this one included; 0 if this try failed in another way. */
  readonly refusals: number;
  /**
   * The milliseconds until `give_up_at`, after which no further try is made. The default
   * of the column is 24 hours from the writing of the notice; a repeated dead letter gets 24 more.
   */
  readonly left: number;
  /** The pause in seconds that the receiver asked for, if it did. */
  readonly told: number | undefined;
  /** A random number from 0 to 1. */
  readonly chance: number;
  /** True if the request ended because another client waited for its place. */
  readonly hasGivenWay?: boolean | undefined;
}

/** The longest pause that a receiver may ask for, in seconds. */
const LONGEST_TOLD = 3_600;

/**
 * Returns the milliseconds until the next try; undefined if the notice becomes a dead letter. A
 * pause that the receiver asks for delays a try, but not beyond `give_up_at`: the last try is made
 * when `left` is over. A request that gave its place to another client is repeated at once, because
 * its client may be healthy, and a busy machine slow.
 */
export function nextTry(failed: FailedTry): number | undefined {
  const { tries, refusals, left, told, chance } = failed;
  const pause =
    refusals > 0
      ? AFTER_REFUSALS[refusals - 1]
      : Math.min(FIRST_PAUSE * 2 ** Math.min(tries - 1, 16), LONGEST_PAUSE);
  if (pause === undefined || left <= 0) return undefined;
  if (failed.hasGivenWay) return 0;
  const asked = Math.min(told ?? 0, LONGEST_TOLD) * 1000;
  return Math.min(left, Math.max(pause * (1 + JITTER * chance), asked));
}

/** The answer to a request: delivered, or the words about the failure. */
export interface Answer {
  readonly isDelivered: boolean;
  readonly status: number | undefined;
  readonly result: string;
  /** The pause in seconds that the receiver asked for, if it did. */
  readonly told?: number | undefined;
  /** True if the request ended because another client waited for its place. */
  readonly hasGivenWay?: boolean;
}

/** A row of a queue that was tried. */
export interface TriedRow {
  readonly tries: number;
  /** The answers 400 before this try. */
  readonly refusals: number;
}

/**
 * Decides what follows an answer that did not deliver: what the row records of the failure, and the
 * milliseconds until the next try, undefined for a dead letter.
 *
 * @param left the milliseconds until `give_up_at`
 */
export function afterFailure(answer: Answer, row: TriedRow, left: number, random: Random) {
  const isRefusal = answer.status === 400;
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

/** Reads the header Retry-After (RFC 9110 §10.2.3), in seconds; undefined for any other value. */
export function retryAfterOf(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,9}$/.test(value)) return Number(value);
  const at = value.endsWith(' GMT') ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000));
}
