import { accessSync, constants } from 'node:fs';
import type { Change } from '../changes/change.js';
import { noteChange } from '../changes/setup-note.js';
import type { SetupPart, SetupPlan, SetupRequest } from '../changes/setup-part.js';
import type { CommandContext } from '../command/command-context.js';
import type { Command } from '../command/command.js';
import { ownPath } from '../files/own-program.js';
import { parseArguments, type ParsedArguments } from '../program/arguments.js';
import { homeFolder } from '../program/environment.js';
import { CliFailure, STATUS, usageFailure } from '../program/failure.js';
import {
  HostileList,
  listedReach,
  REACH_NOTE,
  reachNote,
  type ListedReach,
} from '../reach/own-reach.js';
import { SETUP_PARTS } from './parts.js';

const NAMES = SETUP_PARTS.map(({ name }) => name);
const USAGE = `svc setup [${NAMES.join('|')}]... [--yes] [--dry-run] [--remove]`;
const FLAGS = ['yes', 'dry-run', 'remove'];

/** The part of `svc setup` for one tool, and the changes that it needs. */
interface PlannedPart {
  readonly part: SetupPart;
  readonly plan: SetupPlan;
}

/** The changes for all tools together. */
interface WholePlan {
  readonly parts: readonly PlannedPart[];
  /**
   * The change that records the time of the server's list of targets. It is not shown to the user,
   * because it changes only `config.json`.
   */
  readonly note: readonly Change[];
  /** Lines about the server that are shown to the user. */
  readonly lines: readonly string[];
}

/**
 * `svc setup`: connects tools such as ssh with the server. It shows each change of the machine,
 * asks, and makes it; `--remove` undoes the changes.
 */
export const command: Command = {
  usage: USAGE,
  help: [
    'Connects the tools of this machine with the server. Without a name it goes through all but docker.',
    'The server lists the hosts, roles and clusters that you reach; options add further ones.',
    '',
    '--yes      makes the changes without a question',
    '--dry-run  shows the changes and makes none',
    '--remove   undoes the changes',
    ...SETUP_PARTS.flatMap(({ name, summary, help }) => [
      '',
      `${name}: ${summary}`,
      ...(help ?? []).map((line) => `  ${line}`),
    ]),
  ],
  async run(args, context) {
    const { parts, isNamed } = chosenParts(args);
    const options = parseArguments(args, optionsOf(parts), USAGE);
    const planned = await planOf(parts, options, context, isNamed);
    return carryOut(planned, options, context);
  },
};

/**
 * Returns the parts that the arguments name, each for one tool. If they name none, all parts are
 * returned.
 */
function chosenParts(args: readonly string[]): { parts: readonly SetupPart[]; isNamed: boolean } {
  const names = new Set(parseArguments(args, optionsOf(SETUP_PARTS), USAGE).positionals);
  const unknown = [...names].find((name) => !NAMES.includes(name));
  if (unknown !== undefined) throw usageFailure(`svc setup does not know "${unknown}".`, USAGE);
  const isNamed = names.size > 0;
  return { parts: SETUP_PARTS.filter(({ name }) => !isNamed || names.has(name)), isNamed };
}

function optionsOf(parts: readonly SetupPart[]) {
  return {
    flags: [...FLAGS, ...parts.flatMap(({ flags }) => flags ?? [])],
    values: parts.flatMap(({ values }) => values ?? []),
    positionals: NAMES.length,
  };
}

async function planOf(
  parts: readonly SetupPart[],
  options: ParsedArguments,
  context: CommandContext,
  isNamed: boolean,
): Promise<WholePlan> {
  const home = homeFolder();
  if (home === undefined) throw new CliFailure('HOME is not set.', 'Set HOME and run it again.');
  const removes = options.has('remove');
  const program = removes ? ownPath() : assertProgram(ownPath());
  const { reach, lines } = removes ? { reach: undefined, lines: [] } : await askServer(context);
  const request: SetupRequest = { context, options, isNamed, reach, home, program };
  const planned: PlannedPart[] = [];
  for (const part of parts) {
    planned.push({ part, plan: await (removes ? part.remove(request) : part.install(request)) });
  }
  const note = removes
    ? noteChange(context, REACH_NOTE, undefined)
    : isNamed || !reach
      ? []
      : noteChange(context, REACH_NOTE, withTime(context, reach));
  return { parts: planned, note, lines };
}

/**
 * Asks the server for the list of targets (hosts, roles, clusters). If the server cannot be reached
 * or refuses, returns no list and a line that says why. The options that the user gave still work
 * then.
 *
 * @throws HostileList if the answer is no valid list of targets
 */
async function askServer(
  context: CommandContext,
): Promise<{ readonly reach: ListedReach | undefined; readonly lines: readonly string[] }> {
  try {
    return { reach: await listedReach(context), lines: [] };
  } catch (error) {
    if (!(error instanceof CliFailure) || error instanceof HostileList) throw error;
    const { message, whatToDo } = error;
    return {
      reach: undefined,
      lines: [`The list of your access was not read: ${message} ${whatToDo}`],
    };
  }
}

function withTime(context: CommandContext, { changedAt }: ListedReach) {
  return { ...reachNote(context), [context.server()]: changedAt };
}

/** Shows the changes to the user, and makes them if the user agrees. */
async function carryOut(
  { parts: planned, note, lines }: WholePlan,
  options: ParsedArguments,
  { terminal }: CommandContext,
): Promise<number> {
  const changes = planned.flatMap(({ plan }) => plan.changes);
  const document = (applied: boolean) => ({
    applied,
    parts: planned.map(({ part, plan }) => ({
      name: part.name,
      changes: plan.changes.map(({ description }) => description),
      notes: plan.notes ?? [],
    })),
  });
  const notes = [...planned.flatMap(({ plan }) => plan.notes ?? []), ...lines];
  if (changes.length === 0) {
    if (!options.has('dry-run')) for (const change of note) await change.apply();
    terminal.result(document(false), [...notes, 'Nothing to change.']);
    return 0;
  }
  for (const { description } of changes) {
    for (const line of description) terminal.print(line);
    terminal.print();
  }
  if (options.has('dry-run')) {
    terminal.result(document(false), [...notes, 'This was a dry run: nothing was changed.']);
    return 0;
  }
  if (!options.has('yes')) {
    if (!terminal.isInteractive) {
      const whatToDo = 'Look at the changes with --dry-run, then run it again with --yes.';
      throw new CliFailure('svc setup asks before it changes files.', whatToDo, STATUS.usage);
    }
    const question = changes.length === 1 ? 'Make this change?' : 'Make these changes?';
    if (!(await terminal.confirmByEnter(question))) {
      terminal.warn('Nothing was changed.');
      return STATUS.failed;
    }
  }
  for (const change of [...changes, ...note]) await change.apply();
  terminal.result(document(true), [...notes, 'Done.']);
  return 0;
}

function assertProgram(path: string): string {
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch (cause) {
    const whatToDo = `Run: chmod +x '${path}', or install svc again.`;
    throw new CliFailure(`Other programs cannot run ${path}.`, whatToDo, STATUS.failed, { cause });
  }
}
