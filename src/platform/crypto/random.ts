import { randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';

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

/** A new UUIDv7 (RFC 9562 §5.7): its order in time is what keeps the indexes of big tables dense. */
export function newUuid(): string {
  return v7({ random: nonceBytes(16) });
}
