/** Returns the time in milliseconds since 1970. This file alone reads time and chance in the command. */
export function now(): number {
  return Date.now();
}

/** Waits for a number of milliseconds. */
export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Returns a random text of 256 bits, in base64url. */
export function randomText(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url');
}

/** Returns a random UUID. */
export function randomId(): string {
  return crypto.randomUUID();
}
