import {
  Inject,
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { DataSource, type EntityManager } from 'typeorm';
import { CONFIG, type Config } from '#platform/config/config.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import {
  EXPIRED_KINDS,
  ExpiredRowsRepository,
  type ExpiredKind,
} from './expired-rows.repository.js';

/** How many rows a statement deletes: few enough that it is over soon. */
const BATCH = 1000;

/** How many rows of each kind a clean-up deleted; none where there were none. */
export type CleanedUp = Partial<Record<ExpiredKind, number>>;

/**
 * Deletes what has expired, every SVC_CLEANUP_INTERVAL, one replica at a time, in batches. Nothing depends on it but the
 * size of the tables: a row that has expired is refused whether it is there or not.
 */
@Injectable()
export class CleanUp implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #log = new Logger('clean-up');
  readonly #settings: Config['cleanUp'];
  #running: Promise<void> | undefined;
  #isStopping = false;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly schedule: SchedulerRegistry,
    private readonly dataSource: DataSource,
    private readonly rows: ExpiredRowsRepository,
  ) {
    this.#settings = config.cleanUp;
  }

  onApplicationBootstrap(): void {
    const { intervalSeconds } = this.#settings;
    if (intervalSeconds === 0) return;
    const timer = setInterval(() => this.#tick(), intervalSeconds * 1000);
    this.schedule.addInterval('clean-up', timer);
  }

  /** The scheduler ends the timer; what is under way ends after its batch. */
  async beforeApplicationShutdown(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
  }

  /**
   * Cleans up once.
   *
   * @returns undefined where another process is at it
   */
  async run(): Promise<CleanedUp | undefined> {
    const runner = this.dataSource.createQueryRunner();
    try {
      if (!(await this.rows.takeTurn(runner.manager))) return undefined;
      try {
        return await this.#deleteAll(runner.manager);
      } finally {
        await this.rows.endTurn(runner.manager);
      }
    } finally {
      await runner.release();
    }
  }

  /** One that takes longer than the interval is not joined by a second. */
  #tick(): void {
    this.#running ??= this.#runAndTell().finally(() => {
      this.#running = undefined;
    });
  }

  async #runAndTell(): Promise<void> {
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
      const n = await this.rows.delete(tx, kind, BATCH, this.#settings.retentionDays);
      total += n;
      if (n < BATCH) break;
    }
    return total;
  }
}
