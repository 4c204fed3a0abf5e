import type { CommandContext } from '../command/command-context.js';
import type { ParsedArguments } from '../program/arguments.js';
import type { ListedReach } from '../reach/own-reach.js';
import type { Change } from './change.js';

/** The request to set up one tool, or to undo it. */
export interface SetupRequest {
  readonly context: CommandContext;
  /** The options of the part, as the user gave them. */
  readonly options: ParsedArguments;
  /** True when the user named the part; false when `svc setup` goes through every part. */
  readonly isNamed: boolean;
  /** The targets that the server lists for the user; undefined if it lists none or is not asked. */
  readonly reach: ListedReach | undefined;
  /** The home folder of the user. */
  readonly home: string;
  /** The full path of `svc`, for the configuration of other programs. */
  readonly program: string;
}

/** The changes that a part still needs. */
export interface SetupPlan {
  /** Empty when everything is in place. Two changes never concern the same file. */
  readonly changes: readonly Change[];
  /** Lines that the user reads after the changes: what was left out and why, or the next step. */
  readonly notes?: readonly string[];
}

/** One tool that `svc setup` connects with the server. */
export interface SetupPart {
  /** The name that the user types, and the name of the part's note in `config.json`. */
  readonly name: string;
  /** One line for `svc setup --help`. */
  readonly summary: string;
  /** The options of the part: flags without a value, and options with one. */
  readonly flags?: readonly string[];
  readonly values?: readonly string[];
  /** One line for each option, for `svc setup --help`. */
  readonly help?: readonly string[];
  /** Reads the machine and returns the changes that are needed. It changes nothing. */
  install(request: SetupRequest): Promise<SetupPlan>;
  /** Returns the changes that undo the part exactly. It changes nothing. */
  remove(request: SetupRequest): Promise<SetupPlan>;
}
