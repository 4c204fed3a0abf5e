import { newUuid } from '#platform/clock/random.js';
import type { Clock } from '#platform/clock/clock.js';
import type { FailoverLimits } from './failover-limits.js';
import { Marks, type MarkPart } from './marks.js';

/**
 * A heartbeat that the server answered: its time on record, in microseconds of the epoch, and the
 * time of the answer by the monotonic clock.
 */
interface Heartbeat {
  readonly seenAt: bigint;
  readonly at: number;
}

/**
 * The confirmed start of PostgreSQL that a process works on. Times are microseconds of the epoch.
 */
export interface KnownStart {
  readonly startedAt: string;
  readonly confirmedAt: string;
}

/**
 * The memory of a process: the audit rows of its commits, its heartbeats, and the confirmation of
 * the server. If a server lacks one of them, it has lost commits.
 */
export class ReplicaMemory {
  readonly id = newUuid();
  readonly #marks: Marks;
  #heartbeats: readonly Heartbeat[] = [];
  /** Marks that were taken out for a comparison that has not ended. */
  #compared: readonly MarkPart[] = [];
  #known: KnownStart | undefined;
  #highestSerial: bigint | undefined;

  /** @param provable how long an audit row is kept at least, in milliseconds */
  constructor(
    private readonly limits: FailoverLimits,
    provable: number,
    private readonly clock: Clock,
  ) {
    this.#marks = new Marks(limits.remembered, provable, clock);
  }

  /** The start that the process works on; undefined before its first heartbeat. */
  get known(): KnownStart | undefined {
    return this.#known;
  }

  /**
   * True if the process has worked on a confirmed start of PostgreSQL, so that it can say if the
   * next server lacks commits, and if its remembered audit rows can prove such a loss.
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

  /** Remembers audit rows whose commit has returned. */
  noteRecorded(ids: readonly string[]): void {
    this.#marks.note(ids);
  }

  /** Remembers an answered heartbeat. */
  noteHeartbeat(seenAt: bigint): void {
    const at = this.clock.monotonic();
    const last = this.#heartbeats.findLastIndex((one) => this.#isOld(one, at));
    this.#heartbeats = [...this.#heartbeats.slice(Math.max(0, last)), { seenAt, at }];
  }

  /**
   * A heartbeat from a minute before the newest one, so that a standby with a small lag still has
   * it. A restored backup lacks it, even if the process committed nothing else.
   */
  get settledHeartbeat(): bigint | undefined {
    const newest = this.#heartbeats.at(-1);
    return newest && this.#heartbeats.findLast((one) => this.#isOld(one, newest.at))?.seenAt;
  }

  /**
   * The newest answered heartbeat. A server that lacks it has lost commits, at least those of the
   * last moment.
   */
  get newestHeartbeat(): bigint | undefined {
    return this.#heartbeats.at(-1)?.seenAt;
  }

  /**
   * Takes the remembered ids for a comparison. They stay remembered until {@link adopt}, so that a
   * repeated comparison has all of them.
   */
  takeForComparison(): readonly string[] {
    this.#compared = [...this.#compared, ...this.#marks.take()];
    return this.#marks.provableIds(this.#compared);
  }

  /**
   * Takes the ids that were noted after the last comparison. Like the others, they stay remembered
   * until {@link adopt}.
   */
  takeNoted(): readonly string[] {
    const noted = this.#marks.take();
    this.#compared = [...this.#compared, ...noted];
    return this.#marks.provableIds(noted);
  }

  /**
   * Returns the ids that were taken for a comparison and whose commits returned within these last
   * milliseconds. A few older ids are among them, because ids are kept in parts of a second.
   */
  comparedWithin(milliseconds: number): readonly string[] {
    const from = this.clock.monotonic() - milliseconds;
    return this.#marks.provableIds(this.#compared.filter(({ until }) => until >= from));
  }

  /**
   * Continues on a confirmed start. Ids that were lost are forgotten, because they would prove the
   * same loss again. Ids that the server has stay remembered.
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
