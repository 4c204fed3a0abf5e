import { isDatabaseAway } from './faults.js';

/** The most keys of one statement. */
const MOST = 64;

/**
 * The most statements that run at the same time. With two, one statement that hangs does not delay
 * all requests.
 */
const AT_ONCE = 2;

interface Batch<Key, Answer> {
  readonly keys: Key[];
  readonly begin: () => void;
  readonly answers: Promise<readonly Answer[]>;
}

/**
 * Batches the queries of concurrent requests: keys that arrive while statements are under way wait
 * for the next statement, which loads all of them. It is not a cache: each statement begins after
 * its last key arrived, and no result is kept, so that each caller sees all changes that were
 * committed before its call.
 *
 *     ask(a) -> turn ends -> statement(a)
 *     ask(b), ask(c) while two are under way -> one ends -> statement(b, c)
 */
export class QueryBatcher<Key, Answer> {
  /** Batches whose statement has not begun, the oldest first. The last one still takes keys. */
  readonly #waiting: Batch<Key, Answer>[] = [];
  #underWay = 0;
  #isDue = false;

  /** @param statement loads all keys of a batch and returns the results in the order of the keys */
  constructor(private readonly statement: (keys: readonly Key[]) => Promise<readonly Answer[]>) {}

  /**
   * Loads the result of a key by a statement that begins after this call.
   *
   * @throws the error of the statement; if another key may have caused it, the error of a second
   *   statement for this key alone
   */
  async load(key: Key): Promise<Answer> {
    const batch = this.#gathering();
    const index = batch.keys.push(key) - 1;
    try {
      return (await batch.answers)[index] as Answer;
    } catch (error) {
      if (batch.keys.length === 1 || isDatabaseAway(error)) throw error;
      // the failed statement of the batch changed nothing
      const [answer] = await this.statement([key]);
      return answer as Answer;
    }
  }

  #gathering(): Batch<Key, Answer> {
    const last = this.#waiting.at(-1);
    if (last && last.keys.length < MOST) return last;
    const keys: Key[] = [];
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const answers = begun.then(() => this.statement(keys));
    const goOn = () => {
      this.#underWay -= 1;
      this.#beginSoon();
    };
    answers.then(goOn, goOn);
    const batch = { keys, begin, answers };
    this.#waiting.push(batch);
    this.#beginSoon();
    return batch;
  }

  /**
   * Begins the next statement after the current turn of the event loop, so that all requests of
   * this turn join it.
   */
  #beginSoon(): void {
    if (this.#isDue || this.#underWay >= AT_ONCE || this.#waiting.length === 0) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.#underWay += 1;
      this.#waiting.shift()?.begin();
      this.#beginSoon();
    });
  }
}
