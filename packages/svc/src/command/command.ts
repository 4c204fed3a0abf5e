import type { CommandContext, CommandWords } from './command-context.js';

/** A command, in a file of its own that loads when the user runs it. */
export interface Command {
  /** The forms of the command, one a line, for `--help` and for usage errors. */
  readonly usage: string;
  /** Further lines for `--help`. */
  readonly help?: readonly string[];
  /**
   * Runs the command with the arguments after its name.
   *
   * @returns the exit status; nothing means 0
   * @throws CliFailure for everything that the user can act on
   */
  run(args: readonly string[], context: CommandContext): Promise<number | void>;
}

/** An entry of the table of commands. */
export interface CommandEntry extends CommandWords {
  /** Loads the command. */
  load(): Promise<{ readonly command: Command }>;
}
