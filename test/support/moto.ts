import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort } from './free-port.js';

/** The server of moto, which `.ci/run` installs in a virtual environment. */
export const MOTO = '/opt/svc-test/moto/bin/moto_server';

/** The variables with which an AWS SDK calls moto: any key pair is accepted. */
export const MOTO_CREDENTIALS = {
  AWS_ACCESS_KEY_ID: 'test',
  AWS_SECRET_ACCESS_KEY: 'test',
  AWS_REGION: 'eu-central-1',
} as const;

/** A running moto, which answers as S3 and KMS do. */
export interface Moto {
  /** The endpoint of every service, `http://127.0.0.1:{port}`. */
  readonly endpoint: string;
  close(): Promise<void>;
}

/**
 * Starts moto on a port of its own, with the rules of AWS that `moto-as-aws.py` adds. Its buckets and keys live as long as its
 * process.
 */
export async function startMoto(): Promise<Moto> {
  if (!existsSync(MOTO)) throw new Error(`${MOTO} is missing; .ci/run installs it`);
  const port = await freePort();
  const python = join(dirname(MOTO), 'python');
  const launcher = join(import.meta.dirname, 'moto-as-aws.py');
  const child = spawn(python, [launcher, '-H', '127.0.0.1', '-p', String(port)], {
    stdio: 'ignore',
    env: { PATH: process.env['PATH'] ?? '' },
  });
  const ended = once(child, 'close');
  const endpoint = `http://127.0.0.1:${port}`;
  while (!(await answers(`${endpoint}/moto-api/data.json`))) {
    if (child.exitCode !== null) throw new Error('moto ended before it answered');
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
  return {
    endpoint,
    async close() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}
