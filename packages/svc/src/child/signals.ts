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
 * Starts a child process, waits for its end, and passes signals to this process on to it. It
 * listens for signals before the start. Otherwise a signal that comes with the start would end this
 * process alone, and the child process would go on.
 *
 * @throws Error of the system if the program cannot be started
 */
export async function endOf(start: () => ChildProcess): Promise<ChildEnd> {
  let child: ChildProcess | undefined;
  const passOn = (signal: NodeJS.Signals) => {
    if (!isSentToChild(signal)) child?.kill(signal);
  };
  const handlers = SIGNALS.map((signal) => [signal, () => passOn(signal)] as const);
  for (const [signal, handler] of handlers) process.on(signal, handler);
  try {
    const started = start();
    child = started;
    return await new Promise((resolve, reject) => {
      started.once('error', reject);
      started.once('exit', (status, signal) => resolve({ status, signal }));
    });
  } finally {
    for (const [signal, handler] of handlers) process.off(signal, handler);
  }
}

/**
 * Returns true if the child process gets a signal without this process. A terminal sends Ctrl-C to
 * all processes in its foreground, and so does the console of Windows. If Node passed that signal
 * on under Windows, it would end the child process at once.
 */
export function isSentToChild(
  signal: NodeJS.Signals,
  platform: NodeJS.Platform = process.platform,
): boolean {
  if (platform === 'win32') return signal === 'SIGINT';
  return OF_TERMINAL.includes(signal) && [0, 1, 2].some((stream) => isatty(stream));
}
