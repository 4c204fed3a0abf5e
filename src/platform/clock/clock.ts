import { setTimeout as delay } from 'node:timers/promises';

/**
 * The source of time for the service: the wall clock, a monotonic clock, and waiting. Nest injects
 * it by this class; a test passes a clock that stands still until the test advances it.
 */
export abstract class Clock {
  /** The time of day in milliseconds since 1970. An operator or NTP may set it back. */
  abstract milliseconds(): number;

  /**
   * Milliseconds since an arbitrary moment, with fractions. Durations are measured with it, because
   * unlike the time of day it never goes backwards.
   */
  abstract monotonic(): number;

  /**
   * Waits for a number of milliseconds. Rejects with an `AbortError` if the signal is aborted
   * meanwhile.
   */
  abstract sleep(milliseconds: number, options?: { readonly signal?: AbortSignal }): Promise<void>;

  /** The time of day as a `Date`. */
  now(): Date {
    return new Date(this.milliseconds());
  }

  /** The time of day in whole seconds since 1970, as tokens count it (RFC 7519 §2, NumericDate). */
  seconds(): number {
    return Math.floor(this.milliseconds() / 1000);
  }
}

class SystemClock extends Clock {
  override milliseconds(): number {
    return Date.now();
  }

  override monotonic(): number {
    return performance.now();
  }

  override async sleep(
    milliseconds: number,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    await delay(milliseconds, undefined, signal && { signal });
  }
}

/**
 * The clock of the machine. Code that Nest does not build, and so cannot get the clock injected,
 * takes it as the default of a parameter.
 */
export const systemClock: Clock = new SystemClock();
