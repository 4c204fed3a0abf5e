import type { Structure } from './structure.js';

/** A parser under test: a way to call it, and the rules that each of its results must keep. */
export interface FuzzTarget {
  /** The names of the tested functions, which the table of results shows. */
  readonly parser: string;
  /** Valid inputs, from which the first mutants are made. */
  readonly seeds: readonly Buffer[];
  /** Words of the language of the parser, which mutants contain more often than other bytes. */
  readonly dictionary: readonly (string | Buffer)[];
  /** The structure of an input, so that mutants keep its outer form; undefined for plain bytes. */
  readonly structure?: Structure;
  /** The largest number of bytes of a mutant. */
  readonly longest: number;
  /**
   * Gives an input to the parser, and checks its answer.
   *
   * @returns true if the parser accepted the input, false if it refused it by its documented error
   * @throws any other error, which is a finding
   */
  run(input: Buffer): boolean | Promise<boolean>;
}

/** The error for an answer of a parser that breaks a rule of the target. */
export class BrokenRule extends Error {
  override readonly name = 'BrokenRule';
}

/** Throws a {@link BrokenRule} with this text if a rule does not hold. */
export function rule(holds: boolean, text: string): void {
  if (!holds) throw new BrokenRule(text);
}

/**
 * Calls a parser.
 *
 * @returns its result, or undefined if it refused the input by a documented error
 * @throws every error that is not documented
 */
export function attempt<T>(
  parse: () => T,
  isDocumented: (error: unknown) => boolean,
): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (isDocumented(error)) return undefined;
    throw error;
  }
}
