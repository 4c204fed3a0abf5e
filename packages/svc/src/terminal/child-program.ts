import { spawn } from 'node:child_process';
import { sleep } from '../program/clock.js';
import { CliFailure, errorCode } from '../program/failure.js';

/** The signals that are handed on to the program. */
const SIGNALS = ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs a program with the streams of this process, as if it stood in its place. Signals are handed
 * on to it; on a terminal, the keys for an interruption reach it without help.
 *
 * @param install the remedy if the program is not installed
 * @returns its exit status. If a signal ended it, this process ends by the same signal
 * @throws CliFailure if the program is not installed
 */
export async function runInPlace(
  program: string,
  args: readonly string[],
  install: string,
): Promise<number> {
  const child = spawn(program, args, { stdio: 'inherit' });
  const handOn = (signal: NodeJS.Signals) => {
    const isByKey = process.stdin.isTTY && (signal === 'SIGINT' || signal === 'SIGQUIT');
    if (!isByKey) child.kill(signal);
  };
  SIGNALS.forEach((signal) => process.on(signal, handOn));
  const [status, signal] = await new Promise<[number | null, NodeJS.Signals | null]>(
    (resolve, reject) => {
      child.once('error', (error) => reject(notRun(program, install, error)));
      child.once('close', (...end) => resolve(end));
    },
  );
  SIGNALS.forEach((one) => process.off(one, handOn));
  if (signal !== null) {
    process.kill(process.pid, signal);
    await sleep(1_000); // the signal arrives in a moment
  }
  return status ?? 1;
}

function notRun(program: string, install: string, cause: unknown): CliFailure {
  const isMissing = errorCode(cause) === 'ENOENT';
  const message = isMissing ? `${program} is not installed.` : `${program} could not be run.`;
  return new CliFailure(message, install, 1, { cause });
}
