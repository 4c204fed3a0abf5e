import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

/** The time of day. A test passes a clock that it sets itself. */
export interface TimeOfDay {
  now(): Date;
  /** The time in whole seconds since 1970. */
  seconds(): number;
}

/**
 * The clock of the machine. Only this file of the package reads the time and makes random numbers.
 * `packages/demo` uses it too, because a package cannot import the clock of the server.
 */
export const systemClock = {
  now: (): Date => new Date(),
  milliseconds: (): number => Date.now(),
  /**
   * Returns milliseconds since an arbitrary moment. Durations are measured with it, because it
   * never goes backwards.
   */
  monotonic: (): number => performance.now(),
  seconds: (): number => Math.floor(Date.now() / 1000),
  /** Waits for a number of milliseconds. An aborted signal rejects the wait. */
  sleep: (milliseconds: number, options?: { readonly signal: AbortSignal }): Promise<void> =>
    delay(milliseconds, undefined, options),
};

/** Random bytes of the operating system, which are strong enough for secrets. */
export const systemRandom = {
  bytes: (length: number): Buffer => randomBytes(length),
  /** Returns random bytes as a text in base64url; `length` counts the bytes. */
  token: (length = 32): string => randomBytes(length).toString('base64url'),
};

/** Returns a random UUID (RFC 9562, version 4). */
export function newUuid(): string {
  return randomUUID();
}
