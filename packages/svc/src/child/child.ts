import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { CliFailure, errorCode, usageFailure } from '../program/failure.js';
import { fileReason } from '../program/system-errors.js';
import type { Terminal } from '../terminal/terminal.js';
import { childEnvironment, type EnvironmentChange } from './child-environment.js';
import { endOf } from './signals.js';

/** The exit statuses of a shell for a program that is missing, and for one that cannot run. */
const MISSING = 127;
const NOT_RUNNABLE = 126;

/** The arguments of a command, split at `--`. */
export interface SplitArguments {
  /** The arguments of the command itself. */
  readonly own: readonly string[];
  /** The program to run, and its arguments. */
  readonly program: readonly [string, ...string[]];
}

/**
 * Splits the arguments of a command that runs a program. Everything after the first `--` belongs to
 * the program.
 *
 * @throws CliFailure with status 2 if no program is named
 */
export function splitAtProgram(args: readonly string[], usage: string): SplitArguments {
  const end = args.indexOf('--');
  const [first, ...others] = end < 0 ? [] : args.slice(end + 1);
  if (first !== undefined) return { own: args.slice(0, end), program: [first, ...others] };
  throw usageFailure('The program is missing: it stands after "--".', usage);
}

/**
 * Runs a program with a changed environment, and waits for its end. Signals to this process are
 * passed on.
 *
 * @returns the exit status of the program; 128 plus the number of the signal that ended it; 127 if
 *   it is missing, or 126 if it cannot be run
 */
export async function runChild(
  [program, ...args]: SplitArguments['program'],
  change: EnvironmentChange,
  terminal: Terminal,
): Promise<number> {
  try {
    const env = childEnvironment(change);
    const { status, signal } = await endOf(() => spawn(program, args, { env, stdio: 'inherit' }));
    return status ?? statusOf(signal);
  } catch (error) {
    return reportOf(program, error, terminal);
  }
}

function statusOf(signal: NodeJS.Signals | null): number {
  return 128 + (signal === null ? 0 : constants.signals[signal]);
}

function reportOf(program: string, error: unknown, terminal: Terminal): number {
  terminal.warn(`svc: ${lineOfUnstarted(program, error)}`);
  return isMissing(error) ? MISSING : NOT_RUNNABLE;
}

/** Returns the line about a program that cannot be started, with the next step on Windows. */
export function lineOfUnstarted(
  program: string,
  error: unknown,
  platform: NodeJS.Platform = process.platform,
): string {
  const reason = isMissing(error) ? 'it was not found' : fileReason(error);
  const whatToDo = platform === 'win32' ? 'A .cmd or .bat file needs: -- cmd /c NAME' : '';
  return new CliFailure(`${program} cannot be run: ${reason}.`, whatToDo).line;
}

function isMissing(error: unknown): boolean {
  return errorCode(error) === 'ENOENT';
}
