import {
  Inject,
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { warnOfExpiry } from '#domain/directory/api-tokens/expiry-warning.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import {
  EXPIRED_KINDS,
  deleteExpired,
  lockCleanUp,
  unlockCleanUp,
  type ExpiredKind,
} from './expired-rows.repository.js';

/** The most rows that one statement deletes, so that it stays far below its time limit. */
const BATCH = 1000;

/** The number of deleted rows of each kind; a kind of which no row was deleted is missing. */
export type CleanedUp = Partial<Record<ExpiredKind, number>>;

/**
 * Deletes expired rows every SVC_CLEANUP_INTERVAL, in one replica at a time, in batches. Expired
 * rows are harmless, because every statement that reads a row refuses an expired one; but without
 * the clean-up the tables would grow for ever.
 */
@Injectable()
export class CleanUp implements OnApplicationBootstrap, BeforeApplicationShutdown {
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
    const { intervalSeconds } = this.#settings;
    if (intervalSeconds === 0) return;
    this.#timer = setInterval(() => this.#tick(), intervalSeconds * 1000);
  }

  /** Stops the timer, and waits for the batch that is running. */
  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.#timer);
    this.#isStopping = true;
    await this.#running;
  }

  /**
   * Deletes all expired rows once, and warns of API tokens that expire soon.
   *
   * @returns undefined if another process is cleaning up
   */
  async run(): Promise<CleanedUp | undefined> {
    const runner = this.dataSource.createQueryRunner();
    try {
      if (!(await lockCleanUp(runner.manager))) return undefined;
      try {
        await warnOfExpiry(runner.manager);
        return await this.#deleteAll(runner.manager);
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
      const cleaned = Object.entries((await this.run()) ?? {});
      if (cleaned.length === 0) return;
      this.#log.log(`Deleted ${cleaned.map(([kind, n]) => `${n} ${kind}`).join(', ')}`);
    } catch (error) {
      this.#log.warn(`Expired rows are still there: ${reasonOf(error)}`);
    }
  }

  async #deleteAll(tx: EntityManager): Promise<CleanedUp> {
    const cleaned: CleanedUp = {};
    for (const kind of EXPIRED_KINDS) {
      const n = await this.#deleteKind(tx, kind);
      if (n > 0) cleaned[kind] = n;
    }
    return cleaned;
  }

  async #deleteKind(tx: EntityManager, kind: ExpiredKind): Promise<number> {
    let total = 0;
    while (!this.#isStopping) {
      const n = await deleteExpired(tx, kind, BATCH, this.#settings.retentionDays);
      total += n;
      if (n < BATCH) break;
    }
    return total;
  }
}
