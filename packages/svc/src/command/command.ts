import type { CommandContext, CommandWords } from './command-context.js';

/**
 * A command of `svc`. It has a file of its own, which is loaded only when the user runs the
 * command.
 */
export interface Command {
  /** The forms of the command, one on each line, for `--help` and for usage errors. */
  readonly usage: string;
  /** Further lines for `--help`. */
  readonly help?: readonly string[];
  /**
   * Runs the command with the arguments after its name.
   *
   * @returns the exit status; undefined means 0
   * @throws CliFailure for everything that the user can act on
   */
  run(args: readonly string[], context: CommandContext): Promise<number | void>;
}

/** A command in the list of commands, with the function that loads it. */
export interface CommandEntry extends CommandWords {
  /** Loads the file of the command. */
  load(): Promise<{ readonly command: Command }>;
}
