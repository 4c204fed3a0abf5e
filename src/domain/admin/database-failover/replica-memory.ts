import { newUuid } from '#platform/clock/random.js';
import type { Clock } from '#platform/clock/clock.js';
import type { FailoverLimits } from './failover-limits.js';
import { Marks, type MarkPart } from './marks.js';

/**
 * A heartbeat that this process wrote into the database. `seenAt` is its time in the database, in
 * microseconds since 1970. `at` is the time of the response by the monotonic clock, in
 * milliseconds.
 */
interface Heartbeat {
  readonly seenAt: bigint;
  readonly at: number;
}

/**
 * The start of PostgreSQL that is confirmed and on which a process works. Times are decimal texts
 * of microseconds since 1970.
 */
export interface KnownStart {
  readonly startedAt: string;
  readonly confirmedAt: string;
}

/**
 * The memory of a process: the ids of the audit events of its commits, its heartbeats, and the last
 * confirmation of the database server. If a server lacks one of these, the server has lost commits.
 */
export class ReplicaMemory {
  readonly id = newUuid();
  readonly #marks: Marks;
  #heartbeats: readonly Heartbeat[] = [];
  /**
   * The ids that were taken for a comparison with a server, until {@link adopt} ends the
   * comparison.
   */
  #compared: readonly MarkPart[] = [];
  #known: KnownStart | undefined;
  #highestSerial: bigint | undefined;

  /**
   * @param provable the milliseconds for which every audit event is kept at least
   */
  constructor(
    private readonly limits: FailoverLimits,
    provable: number,
    private readonly clock: Clock,
  ) {
    this.#marks = new Marks(limits.remembered, provable, clock);
  }

  /** The start of PostgreSQL on which the process works; undefined before the first heartbeat. */
  get known(): KnownStart | undefined {
    return this.#known;
  }

  /**
   * True if this process can tell if the next database server lacks commits. For that it must have
   * worked on a confirmed start of PostgreSQL, and audit events must be kept long enough to prove a
   * loss.
   */
  get isWitness(): boolean {
    return this.#known !== undefined && this.#marks.areProvable;
  }

  get highestSerial(): bigint | undefined {
    return this.#highestSerial;
  }

  noteSerial(serial: bigint): void {
    if (this.#highestSerial === undefined || serial > this.#highestSerial) {
      this.#highestSerial = serial;
    }
  }

  /** Remembers the ids of audit events after their transaction has committed. */
  noteRecorded(ids: readonly string[]): void {
    this.#marks.note(ids);
  }

  /**
   * Remembers a heartbeat after the database has stored it. `seenAt` is its time in microseconds.
   */
  noteHeartbeat(seenAt: bigint): void {
    const at = this.clock.monotonic();
    const last = this.#heartbeats.findLastIndex((one) => this.#isOld(one, at));
    this.#heartbeats = [...this.#heartbeats.slice(Math.max(0, last)), { seenAt, at }];
  }

  /**
   * A heartbeat from a minute before the newest one. A standby with a small lag has it; a restored
   * backup lacks it, even if the process committed nothing else. Undefined if no remembered
   * heartbeat is so old.
   */
  get settledHeartbeat(): bigint | undefined {
    const newest = this.#heartbeats.at(-1);
    return newest && this.#heartbeats.findLast((one) => this.#isOld(one, newest.at))?.seenAt;
  }

  /**
   * The newest heartbeat that was written. A server that lacks it has lost at least the newest
   * commits.
   */
  get newestHeartbeat(): bigint | undefined {
    return this.#heartbeats.at(-1)?.seenAt;
  }

  /**
   * Returns the remembered ids of audit events for a comparison with a server. They stay remembered
   * until {@link adopt}, so that a repeated comparison has all of them.
   */
  takeForComparison(): readonly string[] {
    this.#compared = [...this.#compared, ...this.#marks.take()];
    return this.#marks.provableIds(this.#compared);
  }

  /**
   * Returns the ids of audit events that were added after the last comparison. They also stay
   * remembered until {@link adopt}.
   */
  takeNoted(): readonly string[] {
    const noted = this.#marks.take();
    this.#compared = [...this.#compared, ...noted];
    return this.#marks.provableIds(noted);
  }

  /**
   * Returns the ids that were taken for a comparison and that this process committed within the
   * last `milliseconds`. A few older ids are among them, because ids are kept in lists of about a
   * second.
   */
  comparedWithin(milliseconds: number): readonly string[] {
    const from = this.clock.monotonic() - milliseconds;
    return this.#marks.provableIds(this.#compared.filter(({ until }) => until >= from));
  }

  /**
   * Continues the memory on a confirmed start of PostgreSQL. Ids that were lost are forgotten,
   * because they would prove the same loss again. Ids that the server has stay remembered.
   */
  adopt(known: KnownStart, wasLost: boolean): void {
    this.#known = known;
    if (wasLost) this.#heartbeats = [];
    else this.#marks.putBack(this.#compared);
    this.#compared = [];
  }

  #isOld({ at }: Heartbeat, now: number): boolean {
    return now - at >= this.limits.remembered;
  }
}
