import { Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { BackgroundProvider } from '#platform/background/background-work.js';
import { Clock } from '#platform/clock/clock.js';
import { QueueWorker } from '#platform/database/queues/queue-worker.js';
import { smallerAfter } from '#platform/database/statements/smaller-batch.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import {
  deleteOfEnded,
  listEnded,
  settleEnded,
  tablesOfEnded,
  type EndedClient,
  type TableOfEnded,
} from './ended-clients.repository.js';

/** Milliseconds between two looks for clients that have ended. */
const POLL = 5_000;

/** The most rows that one statement deletes, so that it stays far below its time limit. */
const BATCH = 1_000;

/**
 * Deletes the rows of clients that were too large for one statement, such as a removed application
 * with hundreds of thousands of grants. No row of them counts any more, so that nothing depends on
 * when it is deleted. The list of the clients is in the database: another process, or the next
 * start of this one, goes on with the rest.
 */
export class EndedClients implements OnApplicationBootstrap, BackgroundProvider {
  readonly #worker: QueueWorker;

  constructor(
    private readonly dataSource: DataSource,
    clock: Clock,
  ) {
    const drain = () => this.drain();
    const log = new Logger('oauth');
    const name = 'The deletion of ended grants';
    this.#worker = new QueueWorker(clock, { drain, poll: POLL, log, name });
  }

  onApplicationBootstrap(): void {
    this.#worker.start();
  }

  /** Waits until the running batch has ended. */
  async stopWork(): Promise<void> {
    await this.#worker.stop();
  }

  /**
   * Deletes the rows of every ended client, except rows that other transactions have locked. If the
   * rows of one client cannot be deleted now, the rows of the other clients are deleted all the
   * same.
   *
   * @throws the first fault, after the rows of the other clients are deleted
   */
  async drain(): Promise<void> {
    const faults: unknown[] = [];
    for (const client of await listEnded(this.dataSource.manager)) {
      await this.#finish(client).catch((error: unknown) => faults.push(error));
    }
    if (faults.length > 0) throw faults[0];
  }

  async #finish(client: EndedClient): Promise<void> {
    for (const table of tablesOfEnded(client)) await this.#deleteRows(client, table);
    if (this.#worker.isStopping) return;
    await withTransactionRetry(this.dataSource, (tx) => settleEnded(tx, client));
  }

  /**
   * Deletes the rows of an ended client in one table, in batches, each in a transaction of its own.
   * If a statement exceeds its time limit, the batches become smaller, because many rows may depend
   * on one grant or session.
   */
  async #deleteRows(client: EndedClient, table: TableOfEnded): Promise<void> {
    let most = BATCH;
    while (!this.#worker.isStopping) {
      try {
        const deleted = await this.#deleteBatch(client, table, most);
        if (deleted < most) return;
      } catch (error) {
        most = smallerAfter(error, most);
      }
    }
  }

  #deleteBatch(client: EndedClient, table: TableOfEnded, most: number): Promise<number> {
    return withTransactionRetry(this.dataSource, (tx) => deleteOfEnded(tx, client, table, most));
  }
}
