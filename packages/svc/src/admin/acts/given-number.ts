import type { ParsedArguments } from '../../program/arguments.js';
import { usageFailure } from '../../program/failure.js';

/**
 * Reads the whole number of an option; undefined if the option is not given. The server checks
 * whether the number is too small or too large.
 * @throws CliFailure with status 2 for a text that is no whole number
 */
export function wholeNumber(options: ParsedArguments, name: string): number | undefined {
  const text = options.value(name);
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw usageFailure(`--${name} needs a whole number.`, `--${name} N`);
}
