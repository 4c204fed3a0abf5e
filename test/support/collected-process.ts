import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent } from '#platform/outbound/undici.js';
import { Client, newAddress } from './client.js';

/** A process of any program, whose output is kept. */
export interface CollectedProcess {
  /** Returns the standard output and error output so far. */
  readonly output: () => string;
  /** Resolves with the exit status when the process has ended; null if a signal ended it. */
  readonly ended: Promise<number | null>;
  /** Waits until a condition is true. Rejects with the output if the process ends before. */
  readonly until: (isDone: () => boolean) => Promise<void>;
}

/** Collects the output of a process. The process gets SIGTERM when the test disposes `parts`. */
export function collected(parts: AsyncDisposableStack, child: ChildProcess): CollectedProcess {
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  parts.defer(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  return {
    output: () => output,
    ended,
    until: async (isDone) => {
      while (!isDone()) {
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`the process ended: ${output}`);
        await delay(20);
      }
    },
  };
}

/** Starts a program that gets only the given environment variables, and a `PATH`. */
export function startCollected(
  parts: AsyncDisposableStack,
  [program = '', ...args]: readonly string[],
  environment: Readonly<Record<string, string>>,
  options: Pick<SpawnOptions, 'cwd'> = {},
): CollectedProcess {
  const env = { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`, ...environment };
  const stdio: SpawnOptions['stdio'] = ['ignore', 'pipe', 'pipe'];
  return collected(parts, spawn(program, args, { ...options, env, stdio }));
}

/**
 * Creates a client that connects to loopback for the service's host, and trusts only one
 * certificate authority.
 */
export function clientThroughProxy(
  parts: AsyncDisposableStack,
  baseUrl: string,
  authorityFile: string,
): Client {
  const dispatcher = new Agent({
    connect: {
      ca: readFileSync(authorityFile),
      lookup: (_name, { all }, done) => {
        if (all === true) done(null, [{ address: '127.0.0.1', family: 4 }]);
        else done(null, '127.0.0.1', 4);
      },
    },
  });
  parts.defer(() => dispatcher.close());
  return new Client(baseUrl, newAddress(), dispatcher);
}
