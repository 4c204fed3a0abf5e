import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { bundledScript } from './bundle-scripts.js';
import { COMPILE_CACHE } from './compile-cache.js';

/** A script of the tests in its own process, so that a test can kill it. */
export interface ChildScript<Answer> {
  readonly pid: number;
  /**
   * Resolves with the first line of the script's output, parsed as JSON. Rejects if the process
   * ends without one.
   */
  readonly answer: Promise<Answer>;
  /** Resolves when the process has ended. */
  readonly gone: Promise<void>;
  /**
   * Returns the signal that ended the process. Returns null while it runs, and if it ended without
   * a signal.
   */
  readonly signal: () => NodeJS.Signals | null;
  /**
   * Returns a text with the exit status or signal and the error output; undefined while it runs.
   */
  readonly end: () => string | undefined;
  /** Ends the standard input, which tells the script to finish, and waits for its end. */
  finish(): Promise<void>;
  /** Kills the process with SIGKILL, and waits for its end. */
  kill(): Promise<void>;
}

/**
 * Options of a script: its user id (only if the tests run as root) and further environment
 * variables.
 */
export interface ScriptOptions {
  readonly uid?: number | undefined;
  readonly variables?: Readonly<Record<string, string>>;
}

const TYPESCRIPT = [
  '--conditions=source',
  `--import=${new URL('typescript-hooks.js', import.meta.url).href}`,
];

/**
 * Runs a file of test/support, which gets one argument as JSON. If the bundle of the scripts has
 * the TypeScript file, it runs from there. Otherwise the process compiles the sources. A JavaScript
 * file imports the build in `dist`.
 *
 * @param options the user of the process, and variables that are added to those of this process
 */
export function runScript<Answer>(
  name: string,
  argument: unknown,
  { uid, variables = {} }: ScriptOptions = {},
): ChildScript<Answer> {
  const bundled = bundledScript(name);
  const child = spawn(
    process.execPath,
    [
      ...(name.endsWith('.ts') && bundled === undefined ? TYPESCRIPT : []),
      '--import',
      file('traffic/recorder.js'),
      bundled ?? file(name),
      JSON.stringify(argument),
    ],
    {
      cwd: file('../..'),
      env: { ...process.env, ...COMPILE_CACHE, ...variables },
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(uid === undefined ? {} : { uid, gid: uid }),
    },
  );
  let errorOutput = '';
  child.stderr?.on('data', (chunk) => (errorOutput += String(chunk)));
  const end = () => {
    if (child.signalCode !== null) return `${child.signalCode}: ${errorOutput}`;
    return child.exitCode === null ? undefined : `exit status ${child.exitCode}: ${errorOutput}`;
  };
  const gone = once(child, 'exit').then(() => undefined);
  return {
    pid: child.pid ?? Number.NaN,
    answer: firstLine(child, end),
    gone,
    signal: () => child.signalCode,
    end,
    finish: async () => {
      child.stdin.end();
      await gone;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await gone;
    },
  };
}

function file(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

function firstLine<Answer>(child: ChildProcess, end: () => string | undefined): Promise<Answer> {
  return new Promise((resolve, reject) => {
    if (child.stdout)
      createInterface({ input: child.stdout }).once('line', (line) => resolve(JSON.parse(line)));
    child.once('error', reject);
    child.once('close', () => reject(new Error(end())));
  });
}
