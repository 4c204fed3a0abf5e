import {
  sortArguments,
  takeOptions,
  WrongArguments,
  type ArgumentNames,
  type SortedArguments,
} from '@svc/arguments';
import { usageFailure } from './failure.js';
import { withNearestWord } from './suggestion.js';

/** The arguments of a command, sorted into options and other arguments. */
export type ParsedArguments = SortedArguments;

/**
 * Sorts the arguments of a command into options and others. Everything after `--` is no option.
 *
 * @throws CliFailure with status 2 for an unknown option, a missing or empty value or too many
 *   arguments
 */
export function parseArguments(
  args: readonly string[],
  names: ArgumentNames,
  usage: string,
): ParsedArguments {
  const sort = () => withoutEmptyValues(sortArguments(args, names), names);
  return understood(sort, usage, undefined, [
    ...(names.flags ?? []),
    ...(names.values ?? []),
    ...OF_EVERY_COMMAND,
  ]);
}

/**
 * Returns sorted arguments if no option has an empty value. A variable of a script may be unset,
 * and without the value a command could concern more than the user wants.
 *
 * @throws WrongArguments for an empty value
 */
function withoutEmptyValues<Sorted extends Pick<SortedArguments, 'all'>>(
  sorted: Sorted,
  { values = [] }: ArgumentNames,
): Sorted {
  const empty = values.find((name) => sorted.all(name).includes(''));
  if (empty !== undefined) throw new WrongArguments(`--${empty} needs a value.`);
  return sorted;
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
const OF_EVERY_COMMAND = [...GLOBAL.flags, ...GLOBAL.values];

/** Further ways in which users of other programs ask for help. */
const HELP_WORDS = ['-help', '-?', '/?'];

/** Returns true if a word after the name of a command begins arguments of another program. */
export type BeginsOthers = (name: string, word: string) => boolean;

/**
 * Finds the options that every command understands among the arguments before `--`, and returns the
 * remaining arguments. Arguments of another program are returned unchanged.
 *
 * @throws CliFailure with status 2 for `--server` without a value
 */
export function parseGlobalOptions(
  args: readonly string[],
  beginsOthers: BeginsOthers = () => false,
): GlobalOptions {
  const end = endOfOwn(args, beginsOthers);
  const own = args
    .slice(0, end)
    .map((text, place) => (place < 2 && HELP_WORDS.includes(text) ? '--help' : text));
  const taken = understood(
    () => withoutEmptyValues(takeOptions(own, GLOBAL), GLOBAL),
    'svc --server URL',
    '--server needs a URL.',
  );
  const rest = taken.rest.map(({ text }) => text);
  const first = rest.findIndex((text) => text !== '--version');
  const versions = first < 0 ? rest.length : first; // a later `--version` is for the command
  return {
    server: taken.value('server'),
    isJson: taken.has('json'),
    wantsHelp: taken.has('help'),
    wantsVersion: versions > 0,
    rest: [...rest.slice(versions), ...args.slice(end)],
  };
}

/**
 * Returns the index of `--`, or of the first argument of another program; the number of arguments
 * if there is neither.
 */
function endOfOwn(args: readonly string[], beginsOthers: BeginsOthers): number {
  let name: string | undefined;
  for (let at = 0; at < args.length; at += 1) {
    const text = args[at] ?? '';
    if (text === '--') return at;
    if (text === '--server') at += 1;
    else if (text.startsWith('--') || text === '-h' || HELP_WORDS.includes(text)) continue;
    else if (name === undefined) name = text;
    else return beginsOthers(name, text) ? at : endOfArguments(args);
  }
  return args.length;
}

function endOfArguments(args: readonly string[]): number {
  return args.includes('--') ? args.indexOf('--') : args.length;
}

/**
 * Runs a function that parses arguments.
 * @throws CliFailure with status 2 in place of its {@link WrongArguments}
 */
function understood<Result>(
  read: () => Result,
  usage: string,
  message?: string,
  known: readonly string[] = [],
): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof WrongArguments)) throw error;
    const typed = error.unknownOption?.replace(/^-+/, '').replace(/=.*/, '') ?? '';
    throw usageFailure(withNearestWord(message ?? error.message, typed, known, '--'), usage);
  }
}
