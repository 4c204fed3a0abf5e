import type { ChildProcess } from 'node:child_process';
import { isatty } from 'node:tty';

/** The signals that are passed on to a child process. Windows knows three of them. */
const SIGNALS: readonly NodeJS.Signals[] = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  ...(process.platform === 'win32' ? [] : (['SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const)),
];

/** The signals that a terminal sends to all processes in its foreground. */
const OF_TERMINAL: readonly string[] = ['SIGINT', 'SIGQUIT'];

/** The end of a child process: its exit status, or the signal that ended it. */
export interface ChildEnd {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * Waits for the end of a child process, and passes signals to this process on to it until then.
 *
 * @throws Error of the system if the program cannot be started
 */
export async function endOf(child: ChildProcess): Promise<ChildEnd> {
  const passOn = (signal: NodeJS.Signals) => {
    // The terminal has sent the signal to the child process, too.
    const hasIt = OF_TERMINAL.includes(signal) && isatty(0);
    if (!hasIt) child.kill(signal);
  };
  const handlers = SIGNALS.map((signal) => [signal, () => passOn(signal)] as const);
  for (const [signal, handler] of handlers) process.on(signal, handler);
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (status, signal) => resolve({ status, signal }));
    });
  } finally {
    for (const [signal, handler] of handlers) process.off(signal, handler);
  }
}
