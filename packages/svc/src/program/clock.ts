/**
 * Returns the time in milliseconds since 1970. Only this file of the command reads the time and
 * makes random numbers.
 */
export function now(): number {
  return Date.now();
}

/** The longest duration of a timer in milliseconds. For a longer one, Node would use 1 ms. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** Waits for a number of milliseconds, at most 24 days. */
export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.min(milliseconds, LONGEST_TIMER)));
}

/**
 * Returns a promise that resolves after some milliseconds. The promise does not keep the process
 * running.
 */
export function patience(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds).unref());
}

/** Returns a random text of 256 bits, in base64url. */
export function randomText(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url');
}

/** Returns a random UUID (RFC 9562, version 4). */
export function randomId(): string {
  return crypto.randomUUID();
}
