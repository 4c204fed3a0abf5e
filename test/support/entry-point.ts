import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';

/** A process that ended, and everything it wrote. */
export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process that is still there. */
export interface EntryPoint {
  readonly ended: Promise<Ended>;
  /** Resolves with what it has written to standard output once that matches; rejects when it ends before. */
  said(pattern: RegExp): Promise<RegExpMatchArray>;
  /** Resolves once it answers at an address; rejects when it ends before. */
  answers(url: string): Promise<void>;
  /** Asks it to end (SIGTERM), and waits until it has. */
  stop(): Promise<Ended>;
}

/** Where an entry point runs, and the whole of its environment: nothing of ours is passed on. */
export interface Surroundings {
  readonly cwd: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts an entry point of the build (`npm test` makes it), such as `demo/main.js`. */
export function start(
  entry: string,
  args: readonly string[],
  { cwd, environment = {} }: Surroundings,
): EntryPoint {
  const file = fileURLToPath(new URL(`../../dist/${entry}`, import.meta.url));
  const child = spawn(process.execPath, [file, ...args], {
    cwd,
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
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
    ended,
    said: (pattern) => until(() => pattern.exec(written.stdout)),
    answers: async (url) => {
      await until(() => fetch(url).catch(() => null));
    },
    stop: async () => {
      if (!isGone(child)) child.kill('SIGTERM');
      return ended;
    },
  };
}

/** Runs an entry point to its end. */
export function run(
  entry: string,
  args: readonly string[],
  surroundings: Surroundings,
): Promise<Ended> {
  return start(entry, args, surroundings).ended;
}

function isGone({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
