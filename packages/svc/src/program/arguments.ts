import { usageFailure } from './failure.js';

/** The options that a command understands, without their dashes. */
export interface OptionNames {
  /** Options without a value, such as `remove` for `--remove`. */
  readonly flags?: readonly string[];
  /**
   * Options with a value, such as `host` for `--host NAME` or `--host=NAME`; each may come several
   * times.
   */
  readonly values?: readonly string[];
  /** The greatest number of arguments that are not options; 0 by default. */
  readonly positionals?: number;
}

/** The arguments of a command, sorted. */
export interface ParsedArguments {
  readonly positionals: readonly string[];
  /** Tells whether a flag was given. */
  has(flag: string): boolean;
  /** Returns the last value of an option. */
  value(name: string): string | undefined;
  /** Returns every value of an option in order. */
  all(name: string): readonly string[];
}

/**
 * Sorts the arguments of a command. Everything after `--` is positional.
 *
 * @throws CliFailure with status 2 for an unknown option, a missing value or too many arguments
 */
export function parseArguments(
  args: readonly string[],
  names: OptionNames,
  usage: string,
): ParsedArguments {
  const found = sortArguments(args, names, usage);
  const superfluous = found.positionals[names.positionals ?? 0];
  if (superfluous !== undefined) throw usageFailure(`Unexpected argument: ${superfluous}`, usage);
  return {
    positionals: found.positionals,
    has: (flag) => found.flags.has(flag),
    value: (name) => found.values.get(name)?.at(-1),
    all: (name) => found.values.get(name) ?? [],
  };
}

function sortArguments(args: readonly string[], names: OptionNames, usage: string) {
  const flags = new Set<string>();
  const values = new Map<string, string[]>();
  const positionals: string[] = [];
  const rest = [...args];
  for (let next = rest.shift(); next !== undefined; next = rest.shift()) {
    if (next === '--') {
      positionals.push(...rest.splice(0));
    } else if (!next.startsWith('-') || next === '-') {
      positionals.push(next);
    } else {
      const [, name = '', inline] = /^--([^=]+)(?:=([\s\S]*))?$/.exec(next) ?? [];
      if (inline === undefined && names.flags?.includes(name)) {
        flags.add(name);
        continue;
      }
      if (!names.values?.includes(name)) throw usageFailure(`Unknown option: ${next}`, usage);
      const value = inline ?? rest.shift();
      if (value === undefined) throw usageFailure(`${next} needs a value.`, usage);
      values.set(name, [...(values.get(name) ?? []), value]);
    }
  }
  return { flags, values, positionals };
}

/** The options that every command understands. */
export interface GlobalOptions {
  readonly server: string | undefined;
  readonly isJson: boolean;
  readonly wantsHelp: boolean;
  readonly wantsVersion: boolean;
  /** The command and its own arguments. */
  readonly rest: readonly string[];
}

/** Takes the options of every command out of the arguments, up to `--`. */
export function parseGlobalOptions(args: readonly string[]): GlobalOptions {
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  const rest: string[] = [];
  const found = { isJson: false, wantsHelp: false, wantsVersion: false };
  let server: string | undefined;
  for (let index = 0; index < end; index += 1) {
    const arg = args[index] ?? '';
    if (arg === '--json') found.isJson = true;
    else if (arg === '--help' || arg === '-h') found.wantsHelp = true;
    else if (arg === '--version' && rest.length === 0) found.wantsVersion = true;
    else if (arg.startsWith('--server=')) server = arg.slice('--server='.length);
    else if (arg === '--server') {
      index += 1;
      server = index < end ? args[index] : undefined;
      if (server === undefined)
        throw usageFailure('--server needs an address.', 'svc --server URL');
    } else rest.push(arg);
  }
  return { server, ...found, rest: [...rest, ...args.slice(end)] };
}
