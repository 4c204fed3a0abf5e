import { Inject, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { BackgroundProvider } from '#platform/background/background-work.js';
import { CertificateAuthority } from '#domain/ssh/authority/certificate-authority.service.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { Database } from '#platform/database/open-database.js';
import {
  isOutage,
  isReadOnly,
  reasonOf,
  sqlStateOf,
  UNCONFIRMED,
} from '#platform/database/statements/faults.js';
import { Confirmation } from './confirmation.js';
import type { FailoverLimits } from './failover-limits.js';
import { endEverything } from './reconciliation/end-everything.js';
import { listKeptSecrets } from './reconciliation/lost-acts.repository.js';
import { operatorActs } from './reconciliation/operator-acts.js';
import { RecentEnds } from './reconciliation/recent-ends.js';
import { redo } from './reconciliation/redo.js';
import { ReplicaMemory } from './replica-memory.js';
import { forgetReplica, recordHeartbeat, type OperatorRow } from './replicas.repository.js';

/** The injection token of the {@link FailoverLimits}, which tests replace by shorter ones. */
export const LIMITS = Symbol('failover limits');

const DAY = 86_400_000;
const HOUR = 3_600_000;

/** Milliseconds between two warnings of the same kind. */
const WARN_EVERY = 10_000;

/**
 * Writes a heartbeat (a row with the time) into the database twice a second, and remembers the
 * commits of this process. It takes part in the confirmation of every database server that its
 * connections reach, so that lost commits are noticed. One loop writes the heartbeats and confirms,
 * so that at most one confirmation runs at a time.
 */
@Injectable()
export class DatabaseFailover implements OnApplicationBootstrap, BackgroundProvider {
  readonly #log = new Logger('database');
  readonly #memory: ReplicaMemory;
  readonly #confirmation: Confirmation;
  readonly #stop = new AbortController();
  /** The controller that ends the pause between two rounds of the loop early when it is aborted. */
  #wake = new AbortController();
  /**
   * True if a connection was refused since the last round of the loop. An older connection may
   * still reach the server from before a failover. So a heartbeat on such a connection does not
   * prove that the server is the same.
   */
  #isRefused = false;
  /** True if the last try reached a standby, which is probably being promoted. */
  #isStandby = false;
  /**
   * The time of the last reset of the PostgreSQL statistics. If it changes, a PostgreSQL process
   * may have crashed, because a crash resets the statistics.
   */
  #statisticsOf: string | undefined;
  /** The ids of the audit events of the operator's command that the last heartbeat read. */
  #byOperator: ReadonlySet<string> = new Set();
  #warnedAt = Number.NEGATIVE_INFINITY;
  #warned: string | undefined;
  #loop: Promise<void> | undefined;

  constructor(
    @Inject(CONFIG) config: Pick<Config, 'database' | 'cleanUp'>,
    @Inject(LIMITS) private readonly limits: FailoverLimits,
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly recentEnds: RecentEnds,
    authority: CertificateAuthority,
  ) {
    this.#memory = new ReplicaMemory(limits, keptFor(config.cleanUp.retentionDays), clock);
    this.#confirmation = new Confirmation(
      {
        database: database.unchecked,
        setting: config.database.failover,
        limits,
        clock,
        security: new Logger('security'),
        signal: this.#stop.signal,
        endEverything: (dataSource) => endEverything(dataSource, this.#log),
        listSecrets: listKeptSecrets,
        redo: async (dataSource) => {
          await redo(dataSource, this.recentEnds.recent());
        },
      },
      this.#memory,
    );
    database.onRecorded((ids) => this.#memory.noteRecorded(ids));
    database.gate.onRefusal(() => {
      this.#isRefused = true;
      this.#wake.abort();
    });
    authority.onSerial((serial) => this.#memory.noteSerial(serial));
  }

  /**
   * Writes the first heartbeat before the first request is served, so that no commit happens
   * without a heartbeat before it.
   */
  async onApplicationBootstrap(): Promise<void> {
    const isFine = await this.#turn();
    this.#loop = this.#run(isFine);
  }

  async stopWork(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
    await forgetReplica(this.database.dataSource.manager, this.#memory.id).catch(
      (error: unknown) => {
        this.#log.warn(`Other processes may wait for this one: ${reasonOf(error)}`);
      },
    );
  }

  async #run(isFine: boolean): Promise<void> {
    let pause = this.#pauseAfter(isFine);
    while (!this.#stop.signal.aborted) {
      await this.#rest(pause);
      if (this.#stop.signal.aborted) return;
      pause = this.#pauseAfter(await this.#turn());
    }
  }

  #pauseAfter(isFine: boolean): number {
    if (isFine) return this.limits.heartbeat;
    return this.#isStandby ? this.limits.poll : this.limits.retry;
  }

  /**
   * Pauses the loop. After a successful heartbeat, a refused connection ends the pause early. After
   * a fault it does not, because the loop would then try again without any pause.
   */
  async #rest(milliseconds: number): Promise<void> {
    this.#wake = new AbortController();
    const mayWake = milliseconds === this.limits.heartbeat ? [this.#wake.signal] : [];
    const signal = AbortSignal.any([this.#stop.signal, ...mayWake]);
    await this.clock.sleep(milliseconds, { signal }).catch(() => undefined);
  }

  /**
   * Writes a heartbeat, or takes part in the confirmation of another database server. @returns
   * false if the loop has to try again soon
   */
  async #turn(): Promise<boolean> {
    let mustCompare = false;
    this.#isStandby = false;
    try {
      const isRefused = this.#isRefused;
      this.#isRefused = false;
      if (!isRefused && (await this.#beat())) return true;
      mustCompare = true;
      await this.#confirmation.run();
      mustCompare = false;
      return await this.#beat(); // a fault of this heartbeat must reach the `catch` as well
    } catch (error) {
      this.#isRefused ||= mustCompare;
      this.#isStandby = isReadOnly(error);
      this.#warn(error);
      return false;
    }
  }

  /**
   * Writes a heartbeat into the database.
   *
   * @returns false if the connection reaches a start of PostgreSQL that this process does not know,
   *   or one that has crashed since the last heartbeat
   */
  async #beat(): Promise<boolean> {
    const memory = this.#memory;
    try {
      const { manager } = this.database.dataSource;
      const beat = await recordHeartbeat(manager, memory.id, memory.known, memory.newestHeartbeat);
      if (!beat) return false;
      const isAfterCrash = (this.#statisticsOf ?? beat.statisticsOf) !== beat.statisticsOf;
      this.#statisticsOf = beat.statisticsOf;
      if (isAfterCrash) return false;
      if (!memory.known) memory.adopt(beat, false);
      memory.noteHeartbeat(beat.seenAt);
      this.#noteOperator(beat.byOperator);
      return true;
    } catch (error) {
      if (sqlStateOf(error) === UNCONFIRMED) return false;
      throw error;
    }
  }

  /**
   * Logs why the loop has to try again. The loop tries several times a second, but an outage, or
   * the same reason again, is logged only every 10 s.
   */
  #warn(error: unknown): void {
    if (this.#stop.signal.aborted) return;
    const state = isOutage(error) ? 'cannot be used now' : 'is not confirmed yet';
    const line = `PostgreSQL ${state} (${reasonOf(error)}): trying again`;
    const isKnown = isOutage(error) || line === this.#warned;
    const now = this.clock.monotonic();
    if (isKnown && now - this.#warnedAt < WARN_EVERY) return;
    this.#warnedAt = now;
    this.#warned = line;
    this.#log.warn(line);
  }

  /**
   * Remembers the acts that the operator's command committed, because the command has ended and
   * cannot prove a loss itself. Heartbeats read each audit event several times, so only new ones
   * are added.
   */
  #noteOperator(rows: readonly OperatorRow[]): void {
    const added = rows.filter(({ id }) => !this.#byOperator.has(id));
    this.#byOperator = new Set(rows.map(({ id }) => id));
    if (added.length === 0) return;
    this.#memory.noteRecorded(added.map(({ id }) => id));
    for (const row of added) {
      const acts = operatorActs(row);
      if (acts.length > 0) this.recentEnds.note({ auditId: row.id, acts });
    }
  }
}

/**
 * Returns the milliseconds for which every audit event is certainly kept. An older one may be
 * missing because it was deleted, so it proves no loss. An hour is subtracted, because clocks
 * differ.
 */
function keptFor({ auth, oauth }: Config['cleanUp']['retentionDays']): number {
  return Math.max(0, Math.min(auth, oauth) * DAY - HOUR);
}
