import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { COMPILE_CACHE } from './compile-cache.js';

/** The exit status and the output of a process that has ended. */
export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running process of one of the built programs in `dist`. */
export interface EntryPoint {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  /**
   * Resolves with the match when the standard output so far matches. Rejects if the process ends
   * before.
   */
  printed(pattern: RegExp): Promise<RegExpMatchArray>;
  /** Resolves when a request to the URL gets a response. Rejects if the process ends before. */
  answers(url: string): Promise<void>;
  /** Sends SIGTERM, and waits for the end of the process. */
  stop(): Promise<Ended>;
}

/**
 * The working directory and the whole environment of a process. The process inherits no variables.
 */
export interface ProcessSettings {
  readonly cwd: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** The standard input; by default it is closed. */
  readonly input?: string;
}

/**
 * Starts a built program by its path in `dist`, such as `demo/main.js`. `npm test` makes the build
 * before the tests run.
 */
export function start(
  entry: string,
  args: readonly string[],
  { cwd, environment = {}, input }: ProcessSettings,
): EntryPoint {
  const file = fileURLToPath(new URL(`../../dist/${entry}`, import.meta.url));
  const recorder = fileURLToPath(new URL('traffic/recorder.js', import.meta.url));
  const child = spawn(process.execPath, ['--import', recorder, file, ...args], {
    cwd,
    env: {
      PATH: process.env['PATH'],
      TEST_TRAFFIC: process.env['TEST_TRAFFIC'],
      ...COMPILE_CACHE,
      ...environment,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => undefined); // the process ended without reading its input
  child.stdin.end(input ?? '');
  const written = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (written.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (written.stderr += text));
  const ended = once(child, 'close').then(() => ({ status: child.exitCode, ...written }));

  const until = async <T>(look: () => Promise<T | null> | T | null): Promise<T> => {
    for (;;) {
      const found = await look();
      if (found !== null) return found;
      if (isGone(child)) throw new Error(`it ended: ${JSON.stringify(await ended)}`);
      await delay(20);
    }
  };
  return {
    pid: child.pid ?? 0,
    ended,
    printed: (pattern) => until(() => pattern.exec(written.stdout)),
    answers: async (url) => {
      await until(() => fetch(url).catch(() => null));
    },
    stop: async () => {
      if (!isGone(child)) child.kill('SIGTERM');
      return ended;
    },
  };
}

/** Runs a built program until it ends. */
export function run(
  entry: string,
  args: readonly string[],
  surroundings: ProcessSettings,
): Promise<Ended> {
  return start(entry, args, surroundings).ended;
}

function isGone({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
