import type { Coverage } from './coverage.js';
import { Mutator } from './mutator.js';
import { SeededRandom } from './random.js';
import type { FuzzTarget } from './target.js';

/** The most milliseconds for one input. A slower input is a finding. */
const SLOW_MS = 1_000;
/** The number of times that a slow input is run again, because another program may be at fault. */
const SLOW_AGAIN = 3;
const MOST_FINDINGS = 20;

/** What one run is to do. */
export interface FuzzRun {
  readonly executions: number;
  /** The seed of the random numbers. The same seed gives the same mutants. */
  readonly seed: number;
  /** Inputs that an earlier run found, beside those of the target. */
  readonly corpus: readonly Buffer[];
  /** The counters of the instrumented parser; undefined for mutants without guidance. */
  readonly coverage: Coverage | undefined;
  /** Called before each execution, so that the input of a hang is known. */
  readonly before?: (input: Buffer) => void;
}

/** An input on which a parser did not do what its target demands. */
export interface Finding {
  readonly error: string;
  readonly input: Buffer;
}

/** The result of a run. */
export interface FuzzResult {
  readonly executions: number;
  /** The number of inputs that the parser accepted. */
  readonly accepted: number;
  readonly findings: readonly Finding[];
  /** The inputs that reached something new, the smallest set that the run knows. */
  readonly corpus: readonly Buffer[];
}

/** Runs a target on its corpus, and then on mutants of it. Inputs that reach new code are kept. */
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

  /** Returns an input to change. One of the newest is chosen more often. */
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
      // Most parsers are synchronous, and waiting for each of them would take longer than parsing.
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

  /** Runs an input again; what it does was recorded before. */
  async #replay(input: Buffer): Promise<void> {
    try {
      await this.target.run(input);
    } catch {
      // The finding was recorded when the input was run first.
    }
  }

  /** Records a finding. Of several inputs with the same error, the shortest is kept. */
  #report(error: string, input: Buffer): void {
    const known = this.#findings.get(error);
    if (known && known.input.length <= input.length) return;
    this.#findings.set(error, { error, input: Buffer.from(input) });
  }

  /** Selects the inputs that together reach what all reach, the shortest first. */
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

/** Returns an error with the place in which it was thrown, so that two places are two findings. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return `threw ${String(error)}`;
  const place = /\n\s+at (?:async )?([\w.#<> ]+)/.exec(error.stack ?? '')?.[1] ?? '';
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `${error.name}: ${error.message.slice(0, 160)}${cause} in ${place.trim()}`;
}
