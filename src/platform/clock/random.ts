import { randomBytes, randomFillSync, randomUUID } from 'node:crypto';
import { systemClock } from './clock.js';

/** A source of random bytes. Nest injects it by this class, so that a test can pass known bytes. */
export abstract class Random {
  /** Returns random bytes from the generator of the operating system, which are fit for secrets. */
  abstract bytes(length: number): Buffer;

  /**
   * Returns a random secret of `length` bytes in base64url. The default of 32 bytes gives 256 bits.
   */
  token(length = 32): string {
    return this.bytes(length).toString('base64url');
  }
}

class SystemRandom extends Random {
  override bytes(length: number): Buffer {
    return randomBytes(length);
  }
}

/**
 * The random generator of the operating system. Code that Nest does not build, and so cannot get
 * the generator injected, takes it as the default of a parameter.
 */
export const systemRandom: Random = new SystemRandom();

/**
 * A pool of random bytes for nonces. It is filled with 4,096 bytes at a time, because a call to the
 * operating system takes time even for a few bytes.
 */
const pool = Buffer.alloc(4096);
let used = pool.length;

/**
 * Returns random bytes for public values, which are ids and nonces. No byte is used twice. Secrets
 * come from {@link Random} instead, which keeps no pool in memory.
 */
export function nonceBytes(length: number): Buffer {
  if (length > pool.length) return randomFillSync(Buffer.alloc(length));
  if (used + length > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const bytes = Buffer.from(pool.subarray(used, used + length));
  used += length;
  return bytes;
}

/**
 * Makes a function that returns UUIDv7 (RFC 9562 §5.7). Each id consists of the time in
 * milliseconds, a counter of twelve bits, and random bits, which are taken from a UUIDv4. The
 * counter (§6.2, method 1) numbers the ids of one millisecond. The ids of one such function ascend,
 * even if its clock is set back.
 *
 * @param clock returns milliseconds since 1970
 */
export function uuidsBy(clock: () => number): () => string {
  let time = 0;
  let head = '';
  let turn = 0;
  return () => {
    const now = clock();
    turn += 1;
    if (now > time || turn > 0xfff) {
      time = Math.max(now, time + 1);
      const at = time.toString(16).padStart(12, '0');
      head = `${at.slice(0, 8)}-${at.slice(8)}-7`;
      turn = 0;
    }
    return head + turn.toString(16).padStart(3, '0') + randomUUID().slice(18);
  };
}

/**
 * Returns a new UUIDv7. Of two ids of this process, the later one is the greater. So new rows go to
 * the end of the index of a large table, and a list sorted by id is sorted by time.
 */
export const newUuid = uuidsBy(() => systemClock.milliseconds());
