import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort } from './free-port.js';

/**
 * The path of the program moto, a stand-in for AWS. `.ci/run` installs it in a virtual environment.
 */
export const MOTO = '/opt/svc-test/moto/bin/moto_server';

/** The environment variables by which an AWS SDK can call moto. moto accepts any credentials. */
export const MOTO_CREDENTIALS = {
  AWS_ACCESS_KEY_ID: 'test',
  AWS_SECRET_ACCESS_KEY: 'test',
  AWS_REGION: 'eu-central-1',
} as const;

/** A running moto, which answers as Amazon S3 and AWS KMS do. */
export interface Moto {
  /** The URL for every AWS service, `http://127.0.0.1:{port}`. */
  readonly endpoint: string;
  close(): Promise<void>;
}

interface MotoProcess {
  readonly endpoint: string;
  readonly child: ChildProcess;
}

/**
 * The moto of this test worker process. All its test files share it, because Python needs seconds
 * to load it.
 */
let shared: Promise<MotoProcess> | undefined;

/** The number of callers of {@link startMoto} that still use it. */
let users = 0;

/**
 * Returns the moto (stand-in for AWS) of this worker. `moto-as-aws.py` adds rules of AWS that moto
 * lacks. When the last user closes it, its buckets and keys are deleted, so that the next test file
 * finds it empty.
 */
export async function startMoto(): Promise<Moto> {
  shared ??= launch();
  users += 1;
  const { endpoint } = await shared;
  let isOpen = true;
  return {
    endpoint,
    async close() {
      if (isOpen) users -= 1;
      isOpen = false;
      if (users === 0) await fetch(`${endpoint}/moto-api/reset`, { method: 'POST' });
    },
  };
}

/**
 * Starts a moto (stand-in for AWS) of its own for one test, which `close` stops. Tests in which AWS
 * becomes unreachable need it, because other tests share the moto of {@link startMoto}.
 */
export async function startOwnMoto(): Promise<Moto> {
  const { endpoint, child } = await launch();
  return {
    endpoint,
    async close() {
      const ended = once(child, 'close');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function launch(): Promise<MotoProcess> {
  if (!existsSync(MOTO)) throw new Error(`${MOTO} is missing; .ci/run installs it`);
  const port = await freePort();
  const python = join(dirname(MOTO), 'python');
  const launcher = join(import.meta.dirname, 'moto-as-aws.py');
  const child = spawn(python, [launcher, '-H', '127.0.0.1', '-p', String(port)], {
    // The server ends when its standard input closes, and so never outlives this process.
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: process.env['PATH'] ?? '' },
  });
  child.unref();
  const endpoint = `http://127.0.0.1:${port}`;
  while (!(await answers(`${endpoint}/moto-api/data.json`))) {
    if (child.exitCode !== null) throw new Error('moto ended before it answered');
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
  return { endpoint, child };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}
