import { parseArgs } from 'node:util';

/** The names of the options that a program understands, without their dashes. */
export interface ArgumentNames {
  /** The options without a value, such as `remove` for `--remove`. */
  readonly flags?: readonly string[];
  /**
   * The options with a value, such as `host` for `--host NAME` or `--host=NAME`. Each may come
   * several times.
   */
  readonly values?: readonly string[];
  /**
   * True if a value may begin with a dash only after an equals sign. Then a forgotten value is
   * noticed, because the next option is not taken for the value.
   */
  readonly refusesDashes?: boolean;
  /** The options that can also be written as one letter, such as `{ h: 'help' }` for `-h`. */
  readonly letters?: Readonly<Record<string, string>>;
  /** The largest number of arguments that are not options; 0 by default. */
  readonly positionals?: number;
}

/** The arguments of a program, sorted into options and other arguments. */
export interface SortedArguments {
  /** The arguments that are not options, and everything after `--`. */
  readonly positionals: readonly string[];
  /** Returns true if a flag, such as `json` for `--json`, was given. */
  readonly has: (flag: string) => boolean;
  /** Returns the last value of an option; undefined if it was not given. */
  readonly value: (name: string) => string | undefined;
  /** Returns every value of an option in order; none if it was not given. */
  readonly all: (name: string) => readonly string[];
}

/** The error for arguments that a program does not understand. Its message is one line. */
export class WrongArguments extends Error {
  override readonly name = 'WrongArguments';

  constructor(
    message: string,
    /** The option that is not known, as it was typed; undefined for any other fault. */
    readonly unknownOption?: string,
  ) {
    super(message);
  }
}

/**
 * Sorts the arguments of a program or of one of its commands. Everything after `--` is positional.
 *
 * @throws WrongArguments for an unknown option, a missing value or too many arguments
 */
export function sortArguments(args: readonly string[], names: ArgumentNames): SortedArguments {
  const { rest, ...sorted } = takeOptions(args, names);
  const unknown = rest.find(({ isOption }) => isOption);
  if (unknown) throw new WrongArguments(`Unknown option: ${unknown.text}`, unknown.text);
  const positionals = rest.map(({ text }) => text);
  const superfluous = positionals[names.positionals ?? 0];
  if (superfluous !== undefined) throw new WrongArguments(`Unexpected argument: ${superfluous}`);
  return { positionals, ...sorted };
}

/** An argument that is neither one of the known options nor a value of one. */
export interface OtherArgument {
  readonly text: string;
  /** True for an unknown option, false for an argument that is no option. */
  readonly isOption: boolean;
}

/**
 * Removes the known options from the arguments, wherever they stand before `--`, and returns the
 * rest in order, so that another parser can read it.
 *
 * @throws WrongArguments for a missing value
 */
export function takeOptions(
  args: readonly string[],
  { flags = [], values = [], letters = {}, refusesDashes = false }: ArgumentNames,
): Omit<SortedArguments, 'positionals'> & { readonly rest: readonly OtherArgument[] } {
  const given = new Set<string>();
  const found = new Map<string, string[]>();
  const rest: OtherArgument[] = [];
  let last = -1;
  for (const token of tokensOf(args, values)) {
    const { index } = token;
    const text = args[index] ?? '';
    const name = token.kind === 'option' ? nameOf(text, token.name, letters) : undefined;
    if (name !== undefined && values.includes(name)) {
      const isForgotten = refusesDashes && !token.inlineValue && token.value?.startsWith('-');
      if (token.value === undefined || isForgotten) {
        throw new WrongArguments(`${text} needs a value.`);
      }
      found.set(name, [...(found.get(name) ?? []), token.value]);
    } else if (name !== undefined && token.value === undefined && flags.includes(name)) {
      given.add(name);
    } else if (token.kind !== 'option-terminator' && index !== last) {
      rest.push({ text, isOption: token.kind === 'option' });
    }
    last = index; // the parser makes a token of each letter of `-abc`, which is one argument
  }
  return {
    rest,
    has: (flag) => given.has(flag),
    value: (name) => found.get(name)?.at(-1),
    all: (name) => found.get(name) ?? [],
  };
}

/** The fields of a token of Node's parser (`util.parseArgs`) that this file reads. */
interface Token {
  readonly kind: 'option' | 'positional' | 'option-terminator';
  readonly index: number;
  readonly name?: string | undefined;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

/**
 * Lets Node's parser split the arguments. It is told to accept all arguments, because the texts of
 * its errors differ between releases.
 */
function tokensOf(args: readonly string[], values: readonly string[]): readonly Token[] {
  const options = Object.fromEntries(values.map((name) => [name, { type: 'string' } as const]));
  return parseArgs({ args: [...args], options, strict: false, tokens: true }).tokens;
}

/**
 * Returns the name of an option by its text: `--name`, or a single letter `-n`. Returns undefined
 * for a letter that the program does not know.
 */
function nameOf(
  text: string,
  name: string | undefined,
  letters: Readonly<Record<string, string>>,
): string | undefined {
  if (text.startsWith('--')) return name;
  const letter = /^-(\w)$/.exec(text)?.[1];
  return letter !== undefined && Object.hasOwn(letters, letter) ? letters[letter] : undefined;
}
