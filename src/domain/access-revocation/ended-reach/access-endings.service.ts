import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { BackgroundProvider } from '#platform/background/background-work.js';
import { sumOf, type RevokedCounts } from '../revocable.js';
import { Clock } from '#platform/clock/clock.js';
import { QueueWorker } from '#platform/database/queues/queue-worker.js';
import { afterCommit } from '#platform/database/statements/after-commit.js';
import { smallerAfter } from '#platform/database/statements/smaller-batch.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import type { TargetKind } from '#domain/access/reach/decision.js';
import {
  labelEndings,
  putEnding,
  queuedAmong,
  recordEnded,
  recordWithoutCredentials,
  removeEndings,
  takeEnding,
  takeNextEnding,
  takeOfPerson,
  type ChangedBy,
} from './endings.repository.js';
import {
  NOTHING_HELD,
  type EndedReaches,
  type Ending,
  type Losers,
  type ReachEnding,
} from './reach-ending.js';

/**
 * Milliseconds between two reads of the queue `access_endings`. If a transaction of this process
 * puts rows into the queue, the worker reads the queue as soon as the transaction has committed.
 */
const POLL = 1_000;

/** The most credentials that one transaction ends, so that it stays far below its time limit. */
const BATCH = 500;

/** The most rows of the queue on which one transaction works. */
const ROWS_BATCH = 50;

/**
 * The number of people after which {@link AccessEndings.settle} leaves the rest of a queued row to
 * the background worker. So the request gets its response soon. The limit applies only to a row
 * that is about every user of a target. A row that lists its people lists at most this many, so it
 * is finished unless {@link LONGEST_SETTLE} passes.
 */
const BEFORE_ANSWER = 1_000;

/**
 * Milliseconds after which {@link AccessEndings.settle} leaves the remaining credentials to the
 * background worker. This is half of the time that a request may take. The other half is for the
 * change itself and a last batch.
 */
const LONGEST_SETTLE = 15_000;

/**
 * A value below every id in the queue `access_endings`. A pass over all rows of the queue starts
 * after it.
 */
const FIRST = '0';

/**
 * The result of one transaction, which checked a batch of the credentials that a row of the queue
 * is about. `people` are the owners of these credentials.
 */
interface EndedBatch {
  readonly people: readonly string[];
  /** True if the row of the queue lists the people who may have lost their access. */
  readonly namesPeople: boolean;
}

/** The ids of the rows that a change of the access rules has put into the queue. */
export interface QueuedEndings {
  readonly ids: readonly string[];
}

/**
 * Ends the credentials for a target, such as an AWS role, of users that its rule does not admit any
 * more after a change. The queue `access_endings` in the database has a row for each target that a
 * change may close to users.
 */
@Injectable()
export class AccessEndings implements OnApplicationBootstrap, BackgroundProvider {
  readonly #log = new Logger('access');
  #kinds: readonly ReachEnding[] = [];
  readonly #worker: QueueWorker;
  /**
   * The id of the row of the queue on which this process worked last. The next batch is for the
   * next row, if there is one, so that a long row does not keep the others waiting.
   */
  #last = FIRST;
  /**
   * The most credentials of a batch, by the id of a queued row of which a batch exceeded the time
   * limit of a statement. Other rows have batches of {@link BATCH} credentials.
   */
  readonly #smallerBatches = new Map<string, number>();

  constructor(
    private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {
    const drain = () => this.drain();
    const name = 'The queue of ended reaches';
    this.#worker = new QueueWorker(clock, { drain, poll: POLL, log: this.#log, name });
  }

  /**
   * Adds a kind of credential that must end if its user may not use a target any more. The module
   * of the kind calls this method at start-up.
   */
  register(kind: ReachEnding): void {
    this.#kinds = [...this.#kinds, kind];
  }

  onApplicationBootstrap(): void {
    this.#worker.start();
  }

  /**
   * Waits until the running batch has ended. The remaining rows stay in the queue until another
   * process or the next start of this one works on them.
   */
  async stopWork(): Promise<void> {
    await this.#worker.stop();
  }

  /**
   * Records which admin or SCIM token made a change, in the rows that the change has put into the
   * queue in this transaction. It wakes the worker after the commit. Returns the ids of these rows,
   * which the caller passes to {@link settle} after the commit, or undefined if the change has
   * queued nothing.
   */
  async label(tx: EntityManager, by: ChangedBy): Promise<QueuedEndings | undefined> {
    const ids = await labelEndings(tx, by);
    if (ids.length === 0) return undefined;
    afterCommit(tx, () => this.#worker.wake());
    return { ids };
  }

  /**
   * Ends the credentials of people who lost access by a change, before the request that made the
   * change is answered. If there are too many credentials, the background worker ends the rest. If
   * another process works on a row of the queue, the call waits for the batch of that process.
   *
   * A fault in one row is logged and does not delay the other rows. The request does not fail,
   * because the change is committed and the worker tries the row again.
   */
  async settle({ ids }: QueuedEndings): Promise<void> {
    const until = this.clock.milliseconds() + LONGEST_SETTLE;
    const people = new Set<string>();
    for (const id of await this.#settleOfPerson(ids, until)) {
      try {
        await this.#settleRow(id, people, until);
      } catch (error) {
        this.#worker.note(error);
      }
    }
  }

  /**
   * Works on the rows of the queue that list one person, many in one transaction. The removal of a
   * person from one group can put such a row for each of a thousand targets into the queue. Returns
   * the ids of the rows that are not finished: because of a fault, at the time `until` in
   * milliseconds, or because they are of another form.
   */
  async #settleOfPerson(ids: readonly string[], until: number): Promise<string[]> {
    const finished = new Set<string>();
    for (let from = 0; from < ids.length; from += ROWS_BATCH) {
      if (this.clock.milliseconds() > until) break;
      try {
        const some = ids.slice(from, from + ROWS_BATCH);
        for (const { id } of await this.#endOfPerson(some)) finished.add(id);
      } catch (error) {
        this.#worker.note(error);
        break;
      }
    }
    return ids.filter((id) => !finished.has(id));
  }

  /**
   * Ends in one transaction the credentials of the rows that list one person. With several people,
   * the transaction could lock one of them after the credentials of another, and two transactions
   * could wait for each other. Rows after {@link BATCH} credentials are left for later
   * transactions. Returns the finished rows.
   */
  #endOfPerson(ids: readonly string[]): Promise<readonly Ending[]> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      const finished: Ending[] = [];
      let checked = 0;
      for (const ending of await takeOfPerson(tx, ids)) {
        // A row of an application takes at least two batches: the first one ends grants, the second
        // one tokens for a cluster. For most rows one of the two is empty.
        let place: string | undefined = ending.place;
        while (place !== undefined && checked < BATCH) {
          const batch = await this.#endCredentials(tx, { ...ending, place });
          checked += batch.people.length;
          place = batch.next;
        }
        if (place === undefined) finished.push(ending);
        else await putEnding(tx, ending, place);
        if (checked >= BATCH) break;
      }
      await recordWithoutCredentials(tx, finished);
      await removeEndings(tx, finished);
      return finished;
    });
  }

  /**
   * Ends the credentials of one row of the queue, batch by batch. It stops at the time `until`, in
   * milliseconds. If the row does not list its people, it also stops after {@link BEFORE_ANSWER}
   * people.
   */
  async #settleRow(id: string, people: Set<string>, until: number): Promise<void> {
    while (this.clock.milliseconds() <= until) {
      const batch = await this.#endBatch((tx) => takeEnding(tx, id));
      if (!batch) return;
      for (const person of batch.people) people.add(person);
      if (!batch.namesPeople && people.size >= BEFORE_ANSWER) return;
    }
  }

  /**
   * Works on every row of the queue, one batch of each row in turn, so that a large row delays no
   * other row. Returns when the queue is empty or other processes have locked all of its rows.
   */
  async drain(): Promise<void> {
    while (!this.#worker.isStopping) {
      if ((await this.#endNext()) !== undefined) continue;
      if (this.#last === FIRST) break;
      this.#last = FIRST;
    }
    await this.#forgetFinished();
  }

  /**
   * Forgets the smaller batches of rows that are finished. A row on which another process works
   * keeps them: two processes could otherwise take turns with a row, and each would exceed the time
   * limit again because it forgot the smaller batches while the other one worked.
   */
  async #forgetFinished(): Promise<void> {
    if (this.#smallerBatches.size === 0) return;
    const ids = [...this.#smallerBatches.keys()];
    const queued = new Set(await queuedAmong(this.dataSource.manager, ids));
    for (const id of ids) if (!queued.has(id)) this.#smallerBatches.delete(id);
  }

  /**
   * Counts the credentials that people hold for a target and would lose by a change, so that a page
   * can warn before the change. Returns undefined if there are too many to count.
   */
  async countHeld(
    tx: EntityManager,
    target: { readonly id: string; readonly kind: TargetKind },
    losers: Losers,
  ): Promise<RevokedCounts | undefined> {
    const kinds = this.#kinds.filter((kind) => kind.kinds.includes(target.kind));
    const counts: RevokedCounts[] = [];
    for (const kind of kinds) {
      const held = await kind.countHeld(tx, target.id, losers);
      if (held === undefined) return undefined;
      counts.push(held);
    }
    return sumOf(counts);
  }

  #endNext(): Promise<EndedBatch | undefined> {
    return this.#endBatch(async (tx) => {
      const next = await takeNextEnding(tx, this.#last);
      // If the batch of this row fails, the row still counts as the last one, so that the next
      // batch is for another row.
      if (next) this.#last = next.id;
      return next;
    });
  }

  /**
   * Ends one batch of the queued row that `take` returns. After the last batch of a row, listed
   * people who lost the target without holding a credential for it also get an audit event. Returns
   * undefined if `take` returned no row.
   */
  #endBatch(
    take: (tx: EntityManager) => Promise<Ending | undefined>,
  ): Promise<EndedBatch | undefined> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      const ending = await take(tx);
      if (!ending) return undefined;
      const batch = await this.#endCredentials(tx, ending);
      if (batch.next === undefined) await recordWithoutCredentials(tx, [ending]);
      await putEnding(tx, ending, batch.next);
      return { people: batch.people, namesPeople: ending.userIds !== null };
    });
  }

  /**
   * Ends the next credentials of a queued row, at most {@link BATCH}, and records what ended. If a
   * statement exceeds its time limit, the next batches of the row are smaller, because thousands of
   * tokens may depend on one grant. Otherwise no batch of the row would ever succeed.
   */
  async #endCredentials(tx: EntityManager, ending: Ending): Promise<EndedReaches> {
    const kind = this.#kinds.find(({ kinds }) => kinds.includes(ending.kind));
    const most = this.#smallerBatches.get(ending.id) ?? BATCH;
    try {
      // A role of AWS has no registered kind, because its credentials cannot be ended. So the batch
      // is empty.
      const batch = (await kind?.endBatch(tx, ending, most)) ?? NOTHING_HELD;
      await recordEnded(tx, ending, batch.ended);
      return batch;
    } catch (error) {
      this.#smallerBatches.set(ending.id, smallerAfter(error, most));
      throw error;
    }
  }
}
