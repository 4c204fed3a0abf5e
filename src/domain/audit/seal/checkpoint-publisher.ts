import { Logger } from '@nestjs/common';
import type { Clock } from '#platform/clock/clock.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { ObjectStoreError } from '#platform/object-store/object-store-error.js';
import type { CheckpointStore } from './checkpoint-store.js';
import {
  listUnlogged,
  listUnpublished,
  recordLogged,
  recordPublished,
  type Checkpoint,
} from './checkpoints.repository.js';

/** The most checkpoints that one statement reads, and that are written to the store at a time. */
const BATCH = { read: 1_000, written: 20 } as const;

/**
 * The milliseconds after which a round writes no further checkpoints to the store, so that the
 * checkpoints of a long outage do not keep new events from being sealed.
 */
const LONGEST = 30_000;

/**
 * Publishes the signed checkpoints of the seal: in the log of the service, and then in the object
 * store. The log does not wait for the store, so that each of the two is a witness by itself.
 */
export class CheckpointPublisher {
  readonly #log = new Logger('audit');

  constructor(
    private readonly dataSource: DataSource,
    private readonly clock: Clock,
    private readonly store: CheckpointStore | undefined,
    private readonly isStopping: () => boolean,
  ) {}

  /**
   * Publishes the checkpoints that are not published yet, also those that a killed process has
   * left. If the store has another object with the name of a checkpoint, which it keeps for years,
   * the other checkpoints are published all the same.
   *
   * @returns the faults of the checkpoints whose names the store has for other objects, by the ids
   *   of their trees
   */
  async publish(): Promise<ReadonlyMap<string, unknown>> {
    await this.#writeLines();
    const conflicts = new Map<string, unknown>();
    const ends = this.clock.monotonic() + LONGEST;
    for (let isMore = true; isMore;) {
      const some = await listUnpublished(this.dataSource.manager, BATCH.read);
      const published = await this.#writeObjects(some, conflicts, ends);
      isMore = some.length === BATCH.read && published > 0 && !this.#isOver(ends);
    }
    return conflicts;
  }

  #isOver(ends: number): boolean {
    return this.isStopping() || this.clock.monotonic() >= ends;
  }

  async #writeLines(): Promise<void> {
    const { manager } = this.dataSource;
    for (let isMore = true; isMore && !this.isStopping();) {
      const some = await listUnlogged(manager, BATCH.read);
      for (const { tree, epoch, size, note } of some) {
        // A line of the log must not contain line breaks, so the text is logged as an array of its
        // lines. `svc audit verify` reads them from the log.
        this.#log.log({ tree, epoch, size, note: note.split('\n') }, 'audit_checkpoint');
      }
      if (some.length > 0) await recordLogged(manager, some);
      isMore = some.length === BATCH.read;
    }
  }

  /** Writes checkpoints to the store, some at a time. Returns the number of those it has now. */
  async #writeObjects(
    checkpoints: readonly Checkpoint[],
    conflicts: Map<string, unknown>,
    ends: number,
  ): Promise<number> {
    let count = 0;
    for (let from = 0; from < checkpoints.length; from += BATCH.written) {
      if (from > 0 && this.#isOver(ends)) break;
      const some = checkpoints.slice(from, from + BATCH.written);
      const tries = await Promise.allSettled(some.map((one) => this.#write(one, conflicts)));
      const written = some.filter((_, n) => {
        const one = tries[n];
        return one?.status === 'fulfilled' && one.value;
      });
      await recordPublished(this.dataSource.manager, written);
      count += written.length;
      const failed = tries.find((one) => one.status === 'rejected');
      if (failed) throw failed.reason;
    }
    return count;
  }

  /** Writes a checkpoint to the store. Returns false if its name has another object. */
  async #write(checkpoint: Checkpoint, conflicts: Map<string, unknown>): Promise<boolean> {
    try {
      await this.store?.put(checkpoint, this.clock.milliseconds());
      return true;
    } catch (error) {
      if (!isConflict(error)) throw error;
      conflicts.set(checkpoint.tree, error);
      return false;
    }
  }
}

/** Returns true if the object store has another object with the name of a checkpoint. */
export function isConflict(error: unknown): boolean {
  return error instanceof ObjectStoreError && error.fault === 'conflict';
}
