import { systemClock, type Clock } from '#platform/clock/clock.js';

/** The bytes of an id of an audit event. */
const ID_BYTES = 16;

/**
 * The milliseconds for which ids are collected into one list. After that, the list is packed into a
 * buffer, which takes less memory, and a new list begins.
 */
const PART = 1_000;

/** The ids of audit events that this process committed within about a second, the oldest first. */
export interface MarkPart {
  /** The times at which the first and the last id were added, by the monotonic clock. */
  readonly from: number;
  until: number;
  ids: Buffer | string[];
}

/**
 * Remembers the ids of the audit events that this process committed: all ids of the last minute,
 * and the newest of the older ids. After a failover, an id that the database lacks proves lost
 * commits. Each id takes 16 bytes, so that a minute of 3,000 ids a second takes 3 MB.
 */
export class Marks {
  #parts: MarkPart[] = [];

  /**
   * @param span the milliseconds for which every id is remembered
   * @param provable the milliseconds for which an id can prove a loss; an older event may have
   *   expired and been deleted
   */
  constructor(
    private readonly span: number,
    private readonly provable: number = Infinity,
    private readonly clock: Clock = systemClock,
  ) {}

  /** Remembers the ids of audit events after their transaction has committed. */
  note(ids: readonly string[]): void {
    const now = this.clock.monotonic();
    const last = this.#parts.at(-1);
    if (last && Array.isArray(last.ids) && now - last.from < PART) {
      last.until = now;
      last.ids.push(...ids);
      return;
    }
    if (last && Array.isArray(last.ids)) last.ids = packed(last.ids);
    this.#parts.push({ from: now, until: now, ids: [...ids] });
    this.#forget(now);
  }

  /**
   * True if a missing id can prove a loss of commits at all. It cannot if audit events are kept for
   * no time (`provable` is 0).
   */
  get areProvable(): boolean {
    return this.provable > 0;
  }

  /** Returns all remembered ids, the oldest first, and empties this memory. */
  take(): readonly MarkPart[] {
    const taken = this.#parts;
    this.#parts = [];
    return taken;
  }

  /**
   * Remembers again the ids that {@link take} returned. They are put before the ids that were added
   * since, because they are older.
   */
  putBack(taken: readonly MarkPart[]): void {
    this.#parts = [...taken, ...this.#parts];
    this.#forget(this.#parts.at(-1)?.until ?? 0);
  }

  /**
   * Returns the ids in those of the given lists that are young enough to prove a loss, because an
   * older event may have expired and been deleted.
   */
  provableIds(parts: readonly MarkPart[]): string[] {
    const now = this.clock.monotonic();
    return parts
      .filter(({ from }) => now - from < this.provable)
      .flatMap(({ ids }) => (Array.isArray(ids) ? ids : unpacked(ids)));
  }

  /**
   * Forgets ids that are older than `span` milliseconds, except for the newest of them. The age is
   * counted back from the newest id and not from now, because PostgreSQL may be unreachable for
   * longer than `span`. All ids within `span` are kept, because two commits at the same time may be
   * noted in another order than they were written.
   */
  #forget(newestAt: number): void {
    const kept = this.#parts.findIndex(({ until }) => newestAt - until < this.span);
    const count = kept === -1 ? this.#parts.length : kept;
    const newest = this.#parts[count - 1];
    if (!newest) return;
    const ids = Array.isArray(newest.ids)
      ? newest.ids.slice(-1)
      : Buffer.from(newest.ids.subarray(-ID_BYTES));
    this.#parts = [{ ...newest, ids }, ...this.#parts.slice(count)];
  }
}

function packed(ids: readonly string[]): Buffer {
  return Buffer.from(ids.join('').replaceAll('-', ''), 'hex');
}

function unpacked(ids: Buffer): string[] {
  return Array.from({ length: ids.length / ID_BYTES }, (_, n) =>
    ids.toString('hex', n * ID_BYTES, (n + 1) * ID_BYTES),
  );
}
