import { spawn } from 'node:child_process';
import { sleep } from '../program/clock.js';
import { CliFailure, errorCode } from '../program/failure.js';
import { fileReason } from '../program/system-errors.js';
import { endOf } from './signals.js';

/**
 * Runs a program with the standard streams of this process, as if the program replaced this
 * process. Signals are passed on to the program.
 *
 * @param install the remedy if the program is not installed
 * @returns the exit status of the program. If a signal ended it, this process ends by the same
 *   signal
 * @throws CliFailure if the program is not installed or cannot be run
 */
export async function runInPlace(
  program: string,
  args: readonly string[],
  install: string,
): Promise<number> {
  const end = endOf(() => spawn(program, args, { stdio: 'inherit' }));
  const { status, signal } = await end.catch((error: unknown) => {
    throw notRun(program, install, error);
  });
  if (signal !== null) {
    process.kill(process.pid, signal);
    await sleep(1_000); // the signal to this process arrives a moment later
  }
  return status ?? 1;
}

function notRun(program: string, install: string, cause: unknown): CliFailure {
  const isMissing = errorCode(cause) === 'ENOENT';
  const message = isMissing
    ? `${program} is not installed.`
    : `${program} cannot be run: ${fileReason(cause)}.`;
  return new CliFailure(message, install, 1, { cause });
}
