import type { CommandContext } from '../command/command-context.js';
import type { ParsedArguments } from '../program/arguments.js';
import type { ListedReach } from '../reach/own-reach.js';
import type { Change } from './change.js';

/** A request to set up one tool, such as ssh, or to undo that. */
export interface SetupRequest {
  readonly context: CommandContext;
  /** The options for this tool, as the user gave them. */
  readonly options: ParsedArguments;
  /** True if the user named this tool; false if `svc setup` sets up all tools. */
  readonly isNamed: boolean;
  /**
   * The targets (hosts, roles, clusters) that the server lists for the user; undefined if the
   * server has no such list, or was not asked.
   */
  readonly reach: ListedReach | undefined;
  /** The home folder of the user. */
  readonly home: string;
  /** The full path of the `svc` command, which the setup writes into files of other programs. */
  readonly program: string;
}

/** The changes that are needed to set up one tool, or to undo that. */
export interface SetupPlan {
  /**
   * The changes; empty if none is needed. Two changes never concern the same text file, because the
   * second change would find a text that the plan did not expect.
   */
  readonly changes: readonly Change[];
  /** Lines that the user sees after the changes: what was left out and why, or the next step. */
  readonly notes?: readonly string[];
}

/** The part of `svc setup` for one tool, such as ssh, which it connects with the server. */
export interface SetupPart {
  /**
   * The name that the user types, such as `ssh`. `config.json` records the state of the part under
   * the same name.
   */
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
