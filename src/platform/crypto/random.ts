import { randomFillSync, randomUUID } from 'node:crypto';

/** The system's random generator is asked once for many small needs: a call costs more than its bytes. */
const pool = Buffer.alloc(4096);
let used = pool.length;

/** Random bytes for what is public anyway: ids and nonces. Each is handed out once. Secrets ask the system themselves. */
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
 * A new UUIDv7 (RFC 9562 §5.7): the time, and the random bits of a version 4. Its order in time is what keeps the indexes of
 * big tables dense.
 */
export function newUuid(): string {
  const time = Date.now().toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}
