import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { bundledScript } from './bundle-scripts.js';
import { COMPILE_CACHE } from './compile-cache.js';

/** A script of the tests in its own process, so that a test can kill it. */
export interface ChildScript<Answer> {
  readonly pid: number;
  /** Resolves with the first line that the script prints, parsed as JSON. */
  readonly answer: Promise<Answer>;
  /** Resolves when the process has ended. */
  readonly gone: Promise<void>;
  /**
   * Returns the signal that ended the process; null while it runs, or if it has ended by itself.
   */
  readonly signal: () => NodeJS.Signals | null;
  /** Returns how the process has ended, and its error output; undefined while it runs. */
  readonly end: () => string | undefined;
  /** Ends the standard input, which tells the script to finish, and waits for its end. */
  finish(): Promise<void>;
  /** Kills the process with SIGKILL, and waits for its end. */
  kill(): Promise<void>;
}

/** The user (`uid`, if the tests run as root) and the further environment variables of a script. */
export interface ScriptOptions {
  readonly uid?: number | undefined;
  readonly variables?: Readonly<Record<string, string>>;
}

const TYPESCRIPT = [
  '--conditions=source',
  `--import=${new URL('typescript-hooks.js', import.meta.url).href}`,
];

/**
 * Runs a file of test/support with one argument as JSON. If the bundle of the scripts has the
 * TypeScript file, the bundle runs. Otherwise the process imports the sources, and compiles them. A
 * JavaScript file imports the build.
 *
 * @param options the user and group of the process, if the tests run as root, and its variables
 *   beside those of this process
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
