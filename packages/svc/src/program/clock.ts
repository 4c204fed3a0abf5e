/**
 * Returns the time in milliseconds since 1970. No other file of the command reads the time or
 * random numbers.
 */
export function now(): number {
  return Date.now();
}

/** The longest time of a timer in milliseconds. Node would use 1 ms for a longer time. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** Waits for a number of milliseconds, at most 24 days. */
export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.min(milliseconds, LONGEST_TIMER)));
}

/**
 * Returns a promise that resolves after some milliseconds. The process does not wait for it before
 * it ends.
 */
export function patience(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds).unref());
}

/** Returns a random text of 256 bits, in base64url. */
export function randomText(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url');
}

/** Returns a random UUID. */
export function randomId(): string {
  return crypto.randomUUID();
}
