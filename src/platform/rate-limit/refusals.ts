import type { Verdict } from './gcra.js';
import { ShortMemory } from './short-memory.js';
import { TIERS } from './tiers.js';

/** Beyond this many the rest is not remembered: the database refuses them again. */
const MOST = 100_000;

/** A refusal lasts no longer than until the next token. */
const LONGEST = Math.max(...Object.values(TIERS).map(({ interval }) => interval));

/** A moment between these two lets the next request through: as early, and as late, as it may have been. */
interface Refusal {
  readonly earliest: number;
  readonly latest: number;
}

/**
 * What the database refused, until it would refuse it no more.
 *
 * It decided somewhere between the question and its answer. Counted from the question, a refusal ends here no later than
 * there: nobody who waited as long as they were told, by whichever replica, is refused from memory. Counted from the
 * answer, a wait that is promised is long enough.
 */
export class Refusals {
  readonly #known = new ShortMemory(LONGEST, () => new Map<string, Refusal>());

  /** The refusal of a bucket that still holds. */
  of(bucket: string, now: number): Verdict | undefined {
    const known = this.#known.get(bucket, now);
    if (!known || now >= known.earliest) return undefined;
    return { allowed: false, remaining: 0, retryAfter: known.latest - now };
  }

  /**
   * @param asked when the database was asked
   * @param answered when it had answered
   */
  remember(bucket: string, { retryAfter }: Verdict, asked: number, answered: number): void {
    if (this.#known.size >= MOST) return;
    const refusal = { earliest: asked + retryAfter, latest: answered + retryAfter };
    this.#known.set(bucket, refusal, answered);
  }
}
