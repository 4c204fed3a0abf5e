import { randomBytes, randomFillSync, randomUUID } from 'node:crypto';
import { systemClock } from './clock.js';

/** A source of random bytes. Nest injects it by this class. */
export abstract class Random {
  /** Random bytes fit for secrets, fresh from the system's generator. */
  abstract bytes(length: number): Buffer;

  /** A random secret of so many bytes in base64url; 32 bytes are 256 bits. */
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
 * The random generator of the system. Code that Nest does not build takes it as a parameter's
 * default.
 */
export const systemRandom: Random = new SystemRandom();

/**
 * A pool of bytes for nonces. The system is asked for 4,096 bytes at a time, because each call has
 * a fixed cost.
 */
const pool = Buffer.alloc(4096);
let used = pool.length;

/**
 * Random bytes for public values: ids and nonces. No byte is used twice. Secrets come from
 * {@link Random} instead, which keeps no pool.
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
 * Makes a source of UUIDv7 (RFC 9562 §5.7): the time, a counter, and the random bits of a version
 * 4. The ids of one source ascend, even when its clock is set back: the twelve bits behind the
 * milliseconds are the counter (§6.2, method 1).
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
 * Returns a new UUIDv7. Of two ids of this process, the later one is the greater: indexes of large
 * tables stay dense, and lists are sorted by id.
 */
export const newUuid = uuidsBy(() => systemClock.milliseconds());
