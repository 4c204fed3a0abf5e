import type { CommandContext } from '../command/command-context.js';
import type { ParsedArguments } from '../program/arguments.js';
import type { ListedReach } from '../reach/own-reach.js';
import type { Change } from './change.js';

/** The request to set up one tool, or to undo it. */
export interface SetupRequest {
  readonly context: CommandContext;
  /** The options of the part, as the user gave them. */
  readonly options: ParsedArguments;
  /** True if the user named the part; false if `svc setup` sets up all parts. */
  readonly isNamed: boolean;
  /**
   * The targets that the server lists for the user; undefined if the server lists none, or was not
   * asked.
   */
  readonly reach: ListedReach | undefined;
  /** The home folder of the user. */
  readonly home: string;
  /** The full path of `svc`, for the configuration of other programs. */
  readonly program: string;
}

/** The changes that are needed to set up a part, or to undo it. */
export interface SetupPlan {
  /** The changes; empty if none is needed. Two changes never concern the same file. */
  readonly changes: readonly Change[];
  /**
   * Lines that are shown to the user after the changes: parts that were left out with the reason,
   * or the next step.
   */
  readonly notes?: readonly string[];
}

/** The part of `svc setup` that connects one tool with the server. */
export interface SetupPart {
  /** The name that the user types. It is also the name of the part's note in `config.json`. */
  readonly name: string;
  /** A line about the part for `svc setup --help`. */
  readonly summary: string;
  /** The options of the part: `flags` have no value, and `values` have one. */
  readonly flags?: readonly string[];
  readonly values?: readonly string[];
  /** One line for each option, for `svc setup --help`. */
  readonly help?: readonly string[];
  /** Reads the state of the machine and returns the changes that are needed. It changes nothing. */
  install(request: SetupRequest): Promise<SetupPlan>;
  /** Returns the changes that undo the part exactly. It changes nothing. */
  remove(request: SetupRequest): Promise<SetupPlan>;
}
