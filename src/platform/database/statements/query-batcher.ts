import { isDatabaseAway } from './faults.js';

/** The most that one statement asks for. */
const MOST = 64;

/** Statements of one kind that are under way at once: one that hangs does not hold up everybody. */
const AT_ONCE = 2;

interface Batch<Key, Answer> {
  readonly keys: Key[];
  readonly begin: () => void;
  readonly answers: Promise<readonly Answer[]>;
}

/**
 * Asks the database for many requests at once: what is asked for while statements are under way waits for the next one, and
 * that asks for all of it. It is no cache: each statement begins after the last of what it asks for, and nothing is kept of
 * its answer, so that everybody sees what was committed before they asked.
 *
 *     ask(a) -> turn ends -> statement(a)
 *     ask(b), ask(c) while two are under way -> one ends -> statement(b, c)
 */
export class QueryBatcher<Key, Answer> {
  /** Those that have not begun, the oldest first: the last one still takes keys. */
  readonly #waiting: Batch<Key, Answer>[] = [];
  #underWay = 0;
  #isDue = false;

  /** @param statement asks for all the keys; its answers are in their order */
  constructor(private readonly statement: (keys: readonly Key[]) => Promise<readonly Answer[]>) {}

  /**
   * The answer for a key, by a statement that begins after this call.
   *
   * @throws what the statement failed with; where that may be another key's fault, what it fails with for this one alone
   */
  async load(key: Key): Promise<Answer> {
    const batch = this.#gathering();
    const index = batch.keys.push(key) - 1;
    try {
      return (await batch.answers)[index] as Answer;
    } catch (error) {
      if (batch.keys.length === 1 || isDatabaseAway(error)) throw error;
      const [answer] = await this.statement([key]); // nothing of the whole was done
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

  /** With the next turn of the event loop: what else this one asks for goes along. */
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
