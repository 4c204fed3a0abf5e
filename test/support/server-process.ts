import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { COMPILE_CACHE } from './compile-cache.js';

/** The built server as a running process. */
export interface ServerProcess {
  readonly pid: number;
  /** All output so far, of both streams. */
  output(): string;
  /** Resolves once the output matches; rejects if the process ends before that. */
  printed(pattern: RegExp): Promise<void>;
  /** Resolves with the exit status when the process has ended. */
  readonly ended: Promise<number | null>;
  signal(name: NodeJS.Signals): void;
}

/**
 * Runs `node dist/<entry>` with only these environment variables. It records every response,
 * because at the end of the test run all responses are compared with the OpenAPI document.
 */
export function startServerProcess(
  entry: string,
  environment: Readonly<Record<string, string>>,
  options: {
    readonly cwd?: string;
    readonly nodeArguments?: readonly string[];
    readonly entryArguments?: readonly string[];
  } = {},
): ServerProcess {
  const script = fileURLToPath(new URL(`../../dist/${entry}`, import.meta.url));
  const recorder = fileURLToPath(new URL('traffic/recorder.js', import.meta.url));
  const nodeArguments = [...(options.nodeArguments ?? []), '--import', recorder];
  const traffic = process.env['TEST_TRAFFIC'];
  const child = spawn(
    process.execPath,
    [...nodeArguments, script, ...(options.entryArguments ?? [])],
    {
      cwd: options.cwd,
      env: {
        PATH: process.env['PATH'] ?? '',
        ...COMPILE_CACHE,
        ...(traffic === undefined ? {} : { TEST_TRAFFIC: traffic }),
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return {
    pid: child.pid ?? Number.NaN,
    output: () => output,
    ended,
    signal: (name) => void child.kill(name),
    async printed(pattern) {
      while (!pattern.test(output)) {
        if (child.exitCode !== null)
          throw new Error(`ended without printing ${pattern}:\n${output}`);
        await new Promise((resolve) => {
          setTimeout(resolve, 20);
        });
      }
    },
  };
}
