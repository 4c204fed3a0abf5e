import { AsyncResource } from 'node:async_hooks';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import { isOutage } from './faults.js';

/** The largest number of keys in one statement. */
const MOST = 64;

/**
 * The largest number of statements that run at the same time. With two, one statement that hangs
 * does not delay all other requests.
 */
const AT_ONCE = 2;

/**
 * The milliseconds after which a statement is overdue, and a second statement may begin beside it.
 * With a database nearby, a statement ends earlier. So a second statement is rare, and many
 * requests share one.
 */
const OVERDUE_AFTER = 10;

/**
 * The turns of the event loop for which a statement with several keys waits for further ones. While
 * many requests come, a turn takes milliseconds and brings more keys, which then do not wait for a
 * statement of their own. Otherwise a turn takes microseconds.
 */
const GATHERING_TURNS = 3;

interface Batch<Key, Answer> {
  readonly keys: Key[];
  readonly begin: () => void;
  readonly answers: Promise<readonly Answer[]>;
}

/**
 * Joins the queries of concurrent requests into one SQL statement. Keys that arrive while a
 * statement runs wait for the next statement, which loads all of them. The next statement begins
 * when the running one has ended or is overdue. The class is no cache, because it keeps no result.
 * A statement begins after its last key arrived, so each caller sees all changes that were
 * committed before its call.
 *
 *     load(a) -> end of this turn of the event loop -> statement(a)
 *     load(a), load(b) in one turn -> three more turns -> statement(a, b)
 *     load(b), load(c) while statement(a) runs -> it ends or is overdue -> statement(b, c)
 */
export class QueryBatcher<Key, Answer> {
  /**
   * The batches whose statement has not begun, the oldest first. Only the last batch still takes
   * new keys.
   */
  readonly #waiting: Batch<Key, Answer>[] = [];
  /**
   * The running statements, the oldest first, each with the time at which it began, in
   * milliseconds.
   */
  readonly #underWay: { readonly began: number }[] = [];
  #isDue = false;
  #isTimed = false;

  /** @param statement loads all keys of a batch and returns the results in the order of the keys */
  constructor(
    private readonly statement: (keys: readonly Key[]) => Promise<readonly Answer[]>,
    private readonly clock: Pick<Clock, 'monotonic'> = systemClock,
  ) {}

  /**
   * Loads the result of a key by a statement that begins after this call.
   *
   * @throws the error of the statement. If another key of the statement may have caused it, the key
   *   is loaded again alone, and the error of this second statement is thrown
   */
  async load(key: Key): Promise<Answer> {
    const batch = this.#gathering();
    const index = batch.keys.push(key) - 1;
    try {
      return (await batch.answers)[index] as Answer;
    } catch (error) {
      if (batch.keys.length === 1 || isOutage(error)) throw error;
      // The statement can be repeated, because the failed one changed nothing.
      const [answer] = await this.statement([key]);
      return answer as Answer;
    }
  }

  #gathering(): Batch<Key, Answer> {
    const last = this.#waiting.at(-1);
    if (last && last.keys.length < MOST) return last;
    const keys: Key[] = [];
    const { promise: answers, resolve } = Promise.withResolvers<readonly Answer[]>();
    const start = () => {
      resolve(this.#run(keys));
    };
    // Traces and log lines of the statement belong to the request of its first key. If nothing runs
    // or waits, that request itself begins the statement. Otherwise another one may do so. The
    // context is no `AsyncLocalStorage.snapshot()`, whose getter V8 allocates in its old generation
    // (docs/performance/garbage.md).
    const isNext = !this.#isDue && this.#underWay.length === 0 && this.#waiting.length === 0;
    const context = isNext ? undefined : new AsyncResource('QueryBatch');
    const begin = context ? () => context.runInAsyncScope(start) : start;
    const batch = { keys, begin, answers };
    this.#waiting.push(batch);
    this.#beginSoon();
    return batch;
  }

  async #run(keys: readonly Key[]): Promise<readonly Answer[]> {
    const statement = { began: this.clock.monotonic() };
    this.#underWay.push(statement);
    try {
      return await this.statement(keys);
    } finally {
      this.#underWay.splice(this.#underWay.indexOf(statement), 1);
      this.#beginSoon();
    }
  }

  /**
   * Begins the next statement after the current turn of the event loop, so that it takes the keys
   * of all requests of this turn. If there are several, many requests may be coming, so it begins
   * {@link GATHERING_TURNS} later and takes those that arrived meanwhile. A request that comes
   * alone does not wait for that. If a statement is running, the next one begins when the running
   * one is overdue or has ended.
   */
  #beginSoon(): void {
    const { length: running, 0: oldest } = this.#underWay;
    if (this.#isDue || running >= AT_ONCE || this.#waiting.length === 0) return;
    const wait = oldest ? oldest.began + OVERDUE_AFTER - this.clock.monotonic() : 0;
    if (wait > 0) {
      if (this.#isTimed) return;
      this.#isTimed = true;
      setTimeout(() => {
        this.#isTimed = false;
        this.#beginSoon();
      }, Math.ceil(wait));
      return;
    }
    this.#isDue = true;
    const begin = () => {
      this.#isDue = false;
      this.#waiting.shift()?.begin();
      this.#beginSoon();
    };
    let turns = 0;
    const turn = () => {
      const isAlone = this.#waiting[0]?.keys.length === 1;
      if (isAlone || turns === GATHERING_TURNS) begin();
      else setImmediate(turn);
      turns += 1;
    };
    setImmediate(turn);
  }
}
