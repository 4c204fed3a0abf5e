import {
  sortArguments,
  takeOptions,
  WrongArguments,
  type ArgumentNames,
  type SortedArguments,
} from '@svc/arguments';
import { usageFailure } from './failure.js';

/** The arguments of a command, sorted into options and other arguments. */
export type ParsedArguments = SortedArguments;

/**
 * Sorts the arguments of a command into options and others. Everything after `--` is no option.
 *
 * @throws CliFailure with status 2 for an unknown option, a missing value or too many arguments
 */
export function parseArguments(
  args: readonly string[],
  names: ArgumentNames,
  usage: string,
): ParsedArguments {
  return understood(() => sortArguments(args, names), usage);
}

/** The options that every command understands. */
export interface GlobalOptions {
  readonly server: string | undefined;
  readonly isJson: boolean;
  readonly wantsHelp: boolean;
  readonly wantsVersion: boolean;
  /** The name of the command and its own arguments. */
  readonly rest: readonly string[];
}

const GLOBAL = { flags: ['json', 'help'], values: ['server'], letters: { h: 'help' } };

/**
 * Finds the options that every command understands among the arguments before `--`, and returns the
 * remaining arguments.
 *
 * @throws CliFailure with status 2 for `--server` without an address
 */
export function parseGlobalOptions(args: readonly string[]): GlobalOptions {
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  const taken = understood(
    () => takeOptions(args.slice(0, end), GLOBAL),
    'svc --server URL',
    '--server needs an address.',
  );
  const rest = taken.rest.map(({ text }) => text);
  const first = rest.findIndex((text) => text !== '--version');
  const versions = first < 0 ? rest.length : first; // before the command: it may have its own
  return {
    server: taken.value('server'),
    isJson: taken.has('json'),
    wantsHelp: taken.has('help'),
    wantsVersion: versions > 0,
    rest: [...rest.slice(versions), ...args.slice(end)],
  };
}

/**
 * Runs a function that parses arguments.
 * @throws CliFailure with status 2 in place of its {@link WrongArguments}
 */
function understood<Result>(read: () => Result, usage: string, message?: string): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof WrongArguments)) throw error;
    throw usageFailure(message ?? error.message, usage);
  }
}
