import type { Coverage } from './coverage.js';
import { Mutator } from './mutator.js';
import { SeededRandom } from './random.js';
import type { FuzzTarget } from './target.js';

/** The longest time in milliseconds that a parser may need for one input. More is a finding. */
const SLOW_MS = 1_000;
/**
 * The number of times that a slow input is run again. It is a finding only if it is slow each time,
 * because another program may have slowed the first run.
 */
const SLOW_AGAIN = 3;
const MOST_FINDINGS = 20;

/** The options of one run of the fuzzer. */
export interface FuzzRun {
  readonly executions: number;
  /** The seed of the random numbers. The same seed gives the same mutants. */
  readonly seed: number;
  /** Inputs that an earlier run stored. They are run in addition to the seeds of the target. */
  readonly corpus: readonly Buffer[];
  /** The counters of the instrumented parser; undefined if coverage does not guide the run. */
  readonly coverage: Coverage | undefined;
  /**
   * A function that gets each input before its execution. So the caller knows the input if the
   * parser hangs.
   */
  readonly before?: (input: Buffer) => void;
}

/** An input with which the parser broke a rule of its target, and the text of the error. */
export interface Finding {
  readonly error: string;
  readonly input: Buffer;
}

/** The result of a run. */
export interface FuzzResult {
  readonly executions: number;
  /** The number of executed inputs that the parser accepted. */
  readonly accepted: number;
  readonly findings: readonly Finding[];
  /**
   * A small set of inputs that reach every feature the run reached. Without coverage it contains
   * the seeds and the given corpus.
   */
  readonly corpus: readonly Buffer[];
}

/**
 * Runs a target on its seeds and corpus, and then on mutants (changed copies) of these inputs. With
 * coverage, it keeps mutants that reach a new feature, and changes them further.
 */
export async function fuzz(target: FuzzTarget, run: FuzzRun): Promise<FuzzResult> {
  return new Fuzzer(target, run).result();
}

class Fuzzer {
  readonly #random: SeededRandom;
  readonly #mutator: Mutator;
  readonly #kept: Buffer[] = [];
  readonly #findings = new Map<string, Finding>();
  #executions = 0;
  #accepted = 0;

  constructor(
    private readonly target: FuzzTarget,
    private readonly run: FuzzRun,
  ) {
    this.#random = new SeededRandom(run.seed);
    this.#mutator = new Mutator(target, this.#random);
  }

  async result(): Promise<FuzzResult> {
    const { executions, corpus, coverage } = this.run;
    for (const input of [...this.target.seeds, ...corpus]) {
      await this.#execute(input);
      if (coverage) coverage.collect();
      this.#kept.push(input);
    }
    while (this.#executions < executions && this.#findings.size < MOST_FINDINGS) {
      const input = this.#mutator.mutant(this.#chosen(), this.#random.pick(this.#kept));
      await this.#execute(input);
      if (coverage && coverage.collect() > 0) this.#kept.push(Buffer.from(input));
    }
    return {
      executions: this.#executions,
      accepted: this.#accepted,
      findings: [...this.#findings.values()],
      corpus: coverage ? await this.#smallest(coverage) : this.#kept,
    };
  }

  /**
   * Returns one of the kept inputs to change. About half of the time it is one of the newest 32,
   * because these led to the newest code.
   */
  #chosen(): Buffer {
    const kept = this.#kept;
    if (this.#random.oneIn(2)) return this.#random.pick(kept);
    return kept[kept.length - 1 - this.#random.below(Math.min(kept.length, 32))] ?? Buffer.alloc(0);
  }

  async #execute(input: Buffer): Promise<void> {
    this.#executions += 1;
    this.run.before?.(input);
    const start = performance.now();
    try {
      const answer = this.target.run(input);
      // `await` only for promises: most parsers are synchronous, and waiting would take longer than
      // they do.
      if (answer instanceof Promise ? await answer : answer) this.#accepted += 1;
    } catch (error) {
      this.#report(textOf(error), input);
    }
    if (performance.now() - start > SLOW_MS && (await this.#isSlow(input))) {
      this.#report(`takes longer than ${SLOW_MS} ms`, input);
    }
  }

  async #isSlow(input: Buffer): Promise<boolean> {
    for (let again = 0; again < SLOW_AGAIN; again += 1) {
      const start = performance.now();
      await this.#replay(input);
      if (performance.now() - start < SLOW_MS) return false;
    }
    return true;
  }

  /** Runs an input again, and ignores its errors, because `#execute` has recorded them. */
  async #replay(input: Buffer): Promise<void> {
    try {
      await this.target.run(input);
    } catch {
      // `#execute` has recorded this error.
    }
  }

  /** Records a finding. If several inputs cause the same error, it keeps the shortest one. */
  #report(error: string, input: Buffer): void {
    const known = this.#findings.get(error);
    if (known && known.input.length <= input.length) return;
    this.#findings.set(error, { error, input: Buffer.from(input) });
  }

  /**
   * Selects inputs that together have the same features as all kept inputs. It prefers short
   * inputs.
   */
  async #smallest(coverage: Coverage): Promise<Buffer[]> {
    coverage.reset();
    const chosen: Buffer[] = [];
    for (const input of this.#kept.toSorted((one, other) => one.length - other.length)) {
      await this.#replay(input);
      if (coverage.collect() > 0) chosen.push(input);
    }
    return chosen;
  }
}

/**
 * Returns the text of an error with the name of the function that threw it. So the same error from
 * two functions counts as two findings.
 */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return `threw ${String(error)}`;
  const place = /\n\s+at (?:async )?([\w.#<> ]+)/.exec(error.stack ?? '')?.[1] ?? '';
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `${error.name}: ${error.message.slice(0, 160)}${cause} in ${place.trim()}`;
}
