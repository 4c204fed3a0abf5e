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
 * A source of UUIDv7 (RFC 9562 §5.7): the time, a count, and the random bits of a version 4. Those of one source come in the
 * order in which they were made, whatever its clock does: the twelve bits behind the milliseconds count on (§6.2, method 1).
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
 * A new UUIDv7. Its order in time is what keeps the indexes of big tables dense, and what lists are in: of two that this
 * process made, the later one is the greater.
 */
export const newUuid = uuidsBy(() => Date.now());
