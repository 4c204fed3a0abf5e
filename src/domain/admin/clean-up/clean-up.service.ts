import { Inject, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { BackgroundProvider } from '#platform/background/background-work.js';
import { warnOfExpiry } from '#domain/directory/api-tokens/expiry-warning.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { smallerAfter } from '#platform/database/statements/smaller-batch.js';
import { dropPastMonths, makeMonths, type CleanUpRun } from './audit-months.repository.js';
import {
  EXPIRED_KINDS,
  deleteExpired,
  lockCleanUp,
  unlockCleanUp,
  type ExpiredKind,
} from './expired-rows.repository.js';
import { directPoolOf } from '#platform/database/statements/pooled.js';

/** The most rows that one statement deletes, so that it stays far below its time limit. */
const BATCH = 1000;

/**
 * The seconds between two looks for missing monthly partitions of the audit log, if
 * SVC_CLEANUP_INTERVAL turns the clean-up off.
 */
const MONTHS_INTERVAL = 900;

/**
 * The number of deleted rows of each kind. A kind of which nothing was deleted is missing.
 * `auditMonths` is the number of monthly partitions of the audit log that were dropped.
 */
export type CleanedUp = Partial<Record<ExpiredKind | 'auditMonths', number>>;

/**
 * Deletes expired rows every SVC_CLEANUP_INTERVAL, in one replica at a time, in batches. Expired
 * rows are harmless, because every statement that reads a row refuses an expired one; but without
 * the clean-up the tables would grow for ever. It also makes the monthly partitions of the audit
 * log, even if the interval is 0, so that no events collect in the default partitions.
 */
@Injectable()
export class CleanUp implements OnApplicationBootstrap, BackgroundProvider {
  readonly #log = new Logger('clean-up');
  readonly #settings: Config['cleanUp'];
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isStopping = false;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly dataSource: DataSource,
  ) {
    this.#settings = config.cleanUp;
  }

  onApplicationBootstrap(): void {
    const seconds = this.#settings.intervalSeconds || MONTHS_INTERVAL;
    this.#timer = setInterval(() => this.#tick(), seconds * 1000);
  }

  /** Stops the timer, and waits for the batch that is being deleted now. */
  async stopWork(): Promise<void> {
    clearInterval(this.#timer);
    this.#isStopping = true;
    await this.#running;
  }

  /**
   * Deletes all expired rows once, and warns of API tokens that expire soon.
   *
   * @returns the numbers of deleted rows; undefined if another process is cleaning up
   */
  run(): Promise<CleanedUp | undefined> {
    return this.#locked(async (tx) => {
      await this.#warnOfExpiry(tx);
      return this.#deleteAll(tx);
    });
  }

  /**
   * Does some work under the lock of the clean-up.
   *
   * @returns its result; undefined if another process has the lock
   */
  async #locked<Result>(work: (tx: EntityManager) => Promise<Result>): Promise<Result | undefined> {
    // The lock of the clean-up belongs to one connection of PostgreSQL. So the whole run uses one
    // connection, and the connection goes directly to the server and not through a pooler.
    const runner = directPoolOf(this.dataSource).createQueryRunner();
    try {
      if (!(await lockCleanUp(runner.manager))) return undefined;
      try {
        return await work(runner.manager);
      } finally {
        await unlockCleanUp(runner.manager);
      }
    } finally {
      await runner.release();
    }
  }

  /** Starts a clean-up, unless the previous one is still running. */
  #tick(): void {
    this.#running ??= this.#runAndLog().finally(() => {
      this.#running = undefined;
    });
  }

  async #runAndLog(): Promise<void> {
    try {
      if (this.#settings.intervalSeconds === 0) {
        await this.#locked((tx) => this.#makeMonths(tx));
        return;
      }
      const cleaned = Object.entries((await this.run()) ?? {});
      if (cleaned.length === 0) return;
      this.#log.log(`Deleted ${cleaned.map(([kind, n]) => `${n} ${kind}`).join(', ')}`);
    } catch (error) {
      this.#log.warn(`Expired rows are still there: ${reasonOf(error)}`);
    }
  }

  /** Warns of API tokens that expire soon. A fault is logged, and does not stop the clean-up. */
  async #warnOfExpiry(tx: EntityManager): Promise<void> {
    try {
      await warnOfExpiry(tx);
    } catch (error) {
      this.#log.warn(`API tokens that expire soon are not named: ${reasonOf(error)}`);
    }
  }

  async #makeMonths(tx: EntityManager): Promise<void> {
    const run = this.#newRun();
    await makeMonths(tx, run);
    if (run.faults.length > 0) throw run.faults[0];
  }

  #newRun(): CleanUpRun {
    return { log: this.#log, isStopping: () => this.#isStopping, faults: [] };
  }

  async #deleteAll(tx: EntityManager): Promise<CleanedUp> {
    const cleaned: CleanedUp = {};
    const { retentionDays } = this.#settings;
    const run = this.#newRun();
    const { faults } = run;
    const months = await dropPastMonths(tx, retentionDays, run);
    if (months > 0) cleaned.auditMonths = months;
    for (const kind of EXPIRED_KINDS) {
      try {
        const n = await this.#deleteKind(tx, kind);
        if (n > 0) cleaned[kind] = n;
      } catch (error) {
        // The other kinds are deleted all the same, so that their tables do not grow for ever.
        faults.push(error);
      }
    }
    await makeMonths(tx, run);
    if (faults.length > 0) throw faults[0];
    return cleaned;
  }

  /**
   * Deletes the expired rows of a kind in batches. If a statement exceeds its time limit, the
   * batches become smaller: with one session, for example, tens of thousands of grants may end.
   */
  async #deleteKind(tx: EntityManager, kind: ExpiredKind): Promise<number> {
    let total = 0;
    let most = BATCH;
    while (!this.#isStopping) {
      try {
        const n = await deleteExpired(tx, kind, most, this.#settings.retentionDays);
        total += n;
        if (n < most) break;
      } catch (error) {
        most = smallerAfter(error, most);
      }
    }
    return total;
  }
}
