import type { CircuitLimits } from './circuit.js';
import { isPassing, type KmsFault } from './kms-fault.js';

/** The limits of a call to AWS KMS. Times are in milliseconds. */
export interface KmsLimits extends CircuitLimits {
  /** The largest number of attempts of one call. */
  readonly attempts: number;
  readonly attemptTimeout: number;
  /** The longest time of a call with all its attempts and pauses. */
  readonly callTimeout: number;
  /**
   * The longest possible pause before the second attempt. It doubles before each further attempt,
   * up to `longestPause`.
   */
  readonly firstPause: number;
  readonly longestPause: number;
}

/** The limits in production. */
export const KMS_LIMITS: KmsLimits = {
  attempts: 4,
  attemptTimeout: 2000,
  callTimeout: 5000,
  firstPause: 100,
  longestPause: 1000,
  failuresToOpen: 5,
  firstOpening: 2000,
  longestOpening: 30_000,
};

/** The facts of a call whose attempt has failed. */
export interface FailedAttempt {
  /** The number of attempts so far, 1 or more. */
  readonly attempts: number;
  /** The milliseconds since the call began. */
  readonly elapsed: number;
  readonly fault: KmsFault;
  /** A random number from 0 up to but not including 1, for the length of the pause. */
  readonly chance: number;
}

/**
 * Returns the milliseconds to wait before the next attempt; undefined if no further attempt is
 * made. The pause is random, so that many callers do not repeat their calls at the same moment. Its
 * upper limit doubles with each attempt.
 */
export function pauseBeforeRetry(
  { attempts, elapsed, fault, chance }: FailedAttempt,
  limits: KmsLimits,
): number | undefined {
  if (!isPassing(fault) || attempts >= limits.attempts) return undefined;
  const most = Math.min(limits.longestPause, limits.firstPause * 2 ** (attempts - 1));
  const pause = most * chance;
  return elapsed + pause < limits.callTimeout ? pause : undefined;
}

/** Returns the milliseconds that the next attempt may take. */
export function timeForAttempt(elapsed: number, limits: KmsLimits): number {
  return Math.max(0, Math.min(limits.attemptTimeout, limits.callTimeout - elapsed));
}
