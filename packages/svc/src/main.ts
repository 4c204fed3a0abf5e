import type { Command, CommandEntry } from './command/command.js';
import { CommandContext } from './command/command-context.js';
import { COMMANDS } from './commands.js';
import { parseGlobalOptions, type GlobalOptions } from './program/arguments.js';
import { CliFailure, STATUS, usageFailure } from './program/failure.js';
import { version } from './program/version.js';
import { Terminal } from './terminal/terminal.js';

const USAGE = 'svc COMMAND [--server URL] [--json] [--help]';

/** The oldest version of Node on which the command runs. */
const OLDEST_NODE = 20;

/** Runs the command of an argument list and returns the exit status. */
async function run(args: readonly string[]): Promise<number> {
  let terminal = new Terminal(args.includes('--json'));
  try {
    const options = parseGlobalOptions(args);
    terminal = new Terminal(options.isJson);
    return await runCommand(options, terminal);
  } catch (error) {
    return report(error, terminal);
  }
}

async function runCommand(options: GlobalOptions, terminal: Terminal): Promise<number> {
  const [name, ...args] = options.rest;
  if (options.wantsVersion) {
    terminal.result({ version: version() }, [`svc ${version()}`]);
    return 0;
  }
  if (name === undefined || name === 'help') return help(args[0], terminal, name !== undefined);
  const entry = entryOf(name);
  const { command } = await entry.load();
  if (options.wantsHelp) return helpOf(entry, command, terminal);
  const isForProgram = entry.forPrograms?.includes(args[0] ?? '') ?? false;
  const context = new CommandContext(terminal, options.server, COMMANDS, isForProgram);
  return (await command.run(args, context)) ?? 0;
}

function entryOf(name: string): CommandEntry {
  const entry = COMMANDS.find((one) => one.name === name);
  if (!entry) throw usageFailure(`There is no command ${name}.`, `${USAGE}; svc help lists them`);
  return entry;
}

/**
 * Prints the list of commands, or the help of one command. If the user did not ask for help, it
 * returns an exit status for wrong usage.
 */
async function help(
  name: string | undefined,
  terminal: Terminal,
  isAsked: boolean,
): Promise<number> {
  if (name !== undefined) {
    const entry = entryOf(name);
    return helpOf(entry, (await entry.load()).command, terminal);
  }
  const width = Math.max(...COMMANDS.map((one) => one.name.length));
  const lines = [
    `Usage: ${USAGE}`,
    '',
    ...COMMANDS.map((one) => `  ${one.name.padEnd(width)}  ${one.summary}`),
    '',
    'svc help COMMAND explains one.',
  ];
  if (isAsked || terminal.isJson) {
    terminal.result({ commands: COMMANDS.map((one) => [one.name, one.summary]) }, lines);
  } else lines.forEach((line) => terminal.warn(line));
  return isAsked ? 0 : STATUS.usage;
}

function helpOf(entry: CommandEntry, command: Command, terminal: Terminal): number {
  const { usage, help: lines = [] } = command;
  const [first = '', ...others] = usage.split('\n');
  const forms = [`Usage: ${first}`, ...others.map((line) => `       ${line}`)];
  terminal.result({ usage: usage.split('\n'), summary: entry.summary }, [
    ...forms,
    '',
    `${entry.summary}.`,
    ...lines,
  ]);
  return 0;
}

/** Prints a failure and returns its exit status. */
function report(error: unknown, terminal: Terminal): number {
  const failure =
    error instanceof CliFailure
      ? error
      : new CliFailure(
          `svc failed: ${error instanceof Error ? error.message : String(error)}`,
          'Run: svc doctor',
          STATUS.failed,
        );
  const { message, whatToDo, status } = failure;
  if (terminal.isJson) {
    terminal.result({ error: { message, what_to_do: whatToDo, exit_status: status } }, []);
  }
  terminal.warn(`svc: ${message}`);
  if (whatToDo !== '') terminal.warn(`     ${whatToDo.replaceAll('\n', `\n${' '.repeat(12)}`)}`);
  return status;
}

async function main(): Promise<void> {
  process.exitCode = await run(process.argv.slice(2));
}

if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
  process.stderr.write(`svc needs Node ${OLDEST_NODE} or newer; this is ${process.version}.\n`);
  process.exitCode = STATUS.failed;
} else {
  void main();
}
