import type { Command, CommandEntry } from './command/command.js';
import { CommandContext } from './command/command-context.js';
import { COMMANDS } from './commands.js';
import { fileFailure } from './files/private-folder.js';
import { parseGlobalOptions, type GlobalOptions } from './program/arguments.js';
import { ignoreCurrentFolder, isReadOnly, READ_ONLY } from './program/environment.js';
import { CliFailure, errorCode, STATUS, usageFailure } from './program/failure.js';
import { withNearestWord } from './program/suggestion.js';
import { messageWithoutCode } from './program/system-errors.js';
import { OLDEST_NODE, version } from './program/version.js';
import { OutputFailure, Terminal } from './terminal/terminal.js';

const USAGE = 'svc COMMAND [--server URL] [--json] [--help]';

/** Runs the command of an argument list and returns the exit status. */
async function run(args: readonly string[]): Promise<number> {
  let terminal = new Terminal(args.includes('--json'));
  try {
    const options = parseGlobalOptions(args, beginsOthers);
    terminal = new Terminal(options.isJson);
    return await runCommand(options, terminal);
  } catch (error) {
    return report(error, terminal);
  }
}

/**
 * Returns true if a word after the name of a command begins the arguments of another program, as in
 * `svc ssh HOST`.
 */
function beginsOthers(name: string, word: string): boolean {
  const own = COMMANDS.find((one) => one.name === name)?.ownWords;
  return own !== undefined && !own.includes(word);
}

async function runCommand(options: GlobalOptions, terminal: Terminal): Promise<number> {
  const [name, ...args] = options.rest;
  if (options.wantsVersion || name === 'version') {
    terminal.result({ version: version() }, [`svc ${version()}`]);
    return 0;
  }
  if (name === undefined || name === 'help') {
    return help(args[0], terminal, name !== undefined || options.wantsHelp);
  }
  const entry = entryOf(name);
  const { command } = await entry.load();
  const isHelp = args.length === 1 && args[0] === 'help';
  if (options.wantsHelp || isHelp) return helpOf(entry, command, terminal, args[0]);
  if (isReadOnly() && entry.isReadOnly !== true) throw notReadOnly(name);
  const isForTool = entry.toolWords?.includes(args[0] ?? '') === true;
  const context = new CommandContext(terminal, options.server, COMMANDS, isForTool);
  const status = await endOf(command, args, context).catch((error: unknown) =>
    report(withSuggestion(error, entry, args), terminal),
  );
  // A look-up of a name in the DNS cannot be cancelled. It would keep this process running, and the
  // program that waits for it, until the name server answers.
  return isForTool ? process.exit(status) : status;
}

async function endOf(
  command: Command,
  args: readonly string[],
  context: CommandContext,
): Promise<number> {
  return (await command.run(args, context)) ?? 0;
}

function entryOf(name: string): CommandEntry {
  const entry = COMMANDS.find((one) => one.name === name);
  if (entry) return entry;
  const what = name.startsWith('-') ? 'option' : 'command';
  const known = name.startsWith('-')
    ? ['--help', '--json', '--server', '--version']
    : [...COMMANDS.map((one) => one.name), 'help', 'version'];
  const message = withNearestWord(`There is no ${what} ${name}.`, name, known);
  throw usageFailure(message, `${USAGE}; svc help lists them`);
}

/** Returns the failure for a command that can do more than read, where only reading is allowed. */
function notReadOnly(name: string): CliFailure {
  const message = `svc ${name} does more than read, and ${READ_ONLY} is set here.`;
  return new CliFailure(message, 'Run it outside of svc exec --read-only.', STATUS.refused);
}

/**
 * Adds the word that the user may have meant to a failure about the arguments, if a word after the
 * name of the command is not known.
 */
function withSuggestion(error: unknown, entry: CommandEntry, args: readonly string[]): unknown {
  if (!(error instanceof CliFailure) || error.status !== STATUS.usage) return error;
  const [word = '', act = ''] = args;
  const { name, words = [], acts = {} } = entry;
  const ofAct = Object.hasOwn(acts, word) ? (acts[word] ?? '').split(' ') : undefined;
  const [typed, known, before] = ofAct
    ? [act, ofAct, `svc ${name} ${word} `]
    : [word, words, `svc ${name} `];
  if (known.includes(typed)) return error;
  const message = withNearestWord(error.message, typed, known, before);
  return new CliFailure(message, error.whatToDo, error.status);
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
  if (name !== undefined && name !== 'help') {
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

/** Prints the help of a command: the forms that begin with a word, or all if none does. */
function helpOf(entry: CommandEntry, command: Command, terminal: Terminal, word = ''): number {
  const { usage, help: lines = [] } = command;
  const all = usage.split('\n');
  const ofWord = all.filter((form) => `${form} `.startsWith(`svc ${entry.name} ${word} `));
  const shown = ofWord.length > 0 ? ofWord : all;
  const [first = '', ...others] = shown;
  const forms = [`Usage: ${first}`, ...others.map((line) => `       ${line}`)];
  terminal.result({ usage: shown, summary: entry.summary }, [
    ...forms,
    '',
    `${entry.summary}.`,
    ...lines,
  ]);
  return 0;
}

/**
 * Prints a failure on standard error, and with `--json` also as a document on standard output.
 * Returns its exit status.
 */
function report(error: unknown, terminal: Terminal): number {
  const { message, whatToDo, status } = failureOf(error);
  try {
    const document = { error: { message, what_to_do: whatToDo, exit_status: status } };
    if (terminal.isJson) terminal.result(document, []);
  } catch (problem) {
    if (!(problem instanceof OutputFailure)) throw problem;
    // Standard output cannot be written, but standard error still gets the lines.
  }
  terminal.warn(`svc: ${message}`);
  if (whatToDo !== '') terminal.warn(`     ${whatToDo.replaceAll('\n', `\n${' '.repeat(12)}`)}`);
  return status;
}

/** Returns the failure that describes an error, without the code of a system error. */
function failureOf(error: unknown): CliFailure {
  if (error instanceof CliFailure) return error;
  const { path } = Object(error) as { readonly path?: unknown };
  if (errorCode(error) !== undefined && typeof path === 'string') return fileFailure(path, error);
  return new CliFailure(`svc failed: ${messageWithoutCode(error)}`, 'Run: svc doctor');
}

async function main(): Promise<void> {
  ignoreCurrentFolder();
  process.exitCode = await run(process.argv.slice(2));
}

if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
  process.stderr.write(`svc needs Node ${OLDEST_NODE} or newer; this is ${process.version}.\n`);
  process.exitCode = STATUS.failed;
} else {
  void main();
}
