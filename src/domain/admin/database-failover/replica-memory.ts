import { newUuid } from '#platform/clock/random.js';
import type { Clock } from '#platform/clock/clock.js';
import type { FailoverLimits } from './failover-limits.js';
import { Marks, type MarkPart } from './marks.js';

/**
 * An answered heartbeat: the time on record, in microseconds of the epoch, and when it was answered
 * by the monotonic clock.
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
 * the server. A server that lacks one of them lost commits.
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

  /** True if the process ran before a change and can prove a loss. */
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
   * A heartbeat that was a minute old at the newest one, so that a small lag of a standby has not
   * lost it. A restored backup lacks it, also if the process committed nothing else.
   */
  get settledHeartbeat(): bigint | undefined {
    const newest = this.#heartbeats.at(-1);
    return newest && this.#heartbeats.findLast((one) => this.#isOld(one, newest.at))?.seenAt;
  }

  /**
   * The newest answered heartbeat. A server that lacks it lost commits, if only those of the last
   * moment.
   */
  get newestHeartbeat(): bigint | undefined {
    return this.#heartbeats.at(-1)?.seenAt;
  }

  /**
   * Takes the remembered ids for a comparison. They stay known until {@link adopt}, so that a
   * repeated comparison has all.
   */
  takeForComparison(): readonly string[] {
    this.#compared = [...this.#compared, ...this.#marks.take()];
    return this.#marks.provableIds(this.#compared);
  }

  /** Takes the ids that were noted after the last comparison. */
  takeNoted(): readonly string[] {
    const noted = this.#marks.take();
    this.#compared = [...this.#compared, ...noted];
    return this.#marks.provableIds(noted);
  }

  /**
   * Goes on with a confirmed start. What was lost proves nothing again; what was found stays
   * remembered.
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
