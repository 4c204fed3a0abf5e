import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { prepareDataDir } from '../support/cluster-template.js';
import { collected, type CollectedProcess } from '../support/collected-process.js';
import { COMPILE_CACHE } from '../support/compile-cache.js';
import { freePort } from '../support/free-port.js';
import { providerEnvironment, TEST_CLIENT } from '../support/provider-environment.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

describe('a service whose log cannot be written', () => {
  let folder: string;
  let origin: string;
  let idp: DemoIdentityProvider;

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    origin = `http://localhost:${await freePort()}`;
    const redirectUri = `${origin}/oauth/callback`;
    idp = await startDemoIdentityProvider({ ...TEST_CLIENT, redirectUri });
    await prepareDataDir(join(folder, 'data'));
  });
  afterAll(async () => {
    await idp.close();
    await removeDirectory(folder);
  });

  /**
   * Starts the service with a file or a pipe as its standard output, and waits until it is ready.
   */
  async function serve(
    parts: AsyncDisposableStack,
    stdout: number | 'pipe',
    format: string,
    workers = '1',
  ) {
    const child = spawn(process.execPath, [MAIN, '--workers', workers], {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        ...COMPILE_CACHE,
        SVC_BASE_URL: origin,
        SVC_LISTEN_ADDR: `[::]:${new URL(origin).port}`,
        SVC_DATA_DIR: join(folder, 'data'),
        ...providerEnvironment(idp.issuer),
        SVC_LOG_FORMAT: format,
        RUST_LOG: 'info,http=debug',
      },
      stdio: ['ignore', stdout, 'pipe'],
    });
    const server = collected(parts, child);
    parts.defer(() => void child.kill('SIGKILL')); // deferred last, so that it runs first
    let isReady = false;
    const asking = (async () => {
      while (!isReady && child.exitCode === null && child.signalCode === null) {
        isReady = await statusOf('/health/ready').then(
          (status) => status === 200,
          () => false,
        );
      }
    })();
    await server.until(() => isReady);
    await asking;
    return { child, server };
  }

  async function statusOf(path: string): Promise<number> {
    const signal = AbortSignal.timeout(5_000);
    const answer = await fetch(origin + path, { headers: { connection: 'close' }, signal });
    await answer.arrayBuffer();
    return answer.status;
  }

  async function statusAfterTerm(child: { kill(name: 'SIGTERM'): void }, server: CollectedProcess) {
    const began = performance.now();
    child.kill('SIGTERM');
    const status = await server.ended;
    expect(performance.now() - began).toBeLessThan(25_000);
    return status;
  }

  it.each([
    ['json', '1'],
    ['text', '1'],
    ['json', '2'],
    ['text', '2'],
  ])('answers, and stops at SIGTERM, on a full disk: %s, %s worker(s)', async (format, workers) => {
    await using parts = new AsyncDisposableStack();
    const full = openSync('/dev/full', 'w');
    parts.defer(() => closeSync(full));
    const { child, server } = await serve(parts, full, format, workers);
    for (let request = 0; request < 20; request += 1) {
      expect(await statusOf('/health')).toBe(200);
    }
    expect(await statusAfterTerm(child, server)).toBe(0);
    // Each process that tried to write a log line reports the loss once: the primary and up to 2
    // workers.
    const notices = server.output().match(/log lines are lost.*ENOSPC/g) ?? [];
    expect(notices.length).toBeGreaterThan(0);
    expect(notices.length).toBeLessThanOrEqual(workers === '1' ? 1 : 3);
  });

  it.each(['json', 'text'])(
    'answers after the reader of its log has gone, and writes no notice: %s',
    async (format) => {
      await using parts = new AsyncDisposableStack();
      const { child, server } = await serve(parts, 'pipe', format);
      child.stdout?.destroy();
      for (let request = 0; request < 20; request += 1) {
        expect(await statusOf('/health')).toBe(200);
      }
      expect(await statusAfterTerm(child, server)).toBe(0);
      expect(server.output()).not.toContain('log lines are lost');
    },
  );

  it.each(['json', 'text'])(
    'answers, and stops at SIGTERM, while its log stands still: %s',
    async (format) => {
      await using parts = new AsyncDisposableStack();
      const { child, server } = await serve(parts, 'pipe', format);
      child.stdout?.pause();
      // More lines than the pipe and the stream of the test hold.
      for (let turn = 0; turn < 200; turn += 1) {
        const answers = await Promise.all(Array.from({ length: 20 }, () => statusOf('/health')));
        expect(new Set(answers)).toEqual(new Set([200]));
      }
      expect(await statusAfterTerm(child, server)).toBe(0);
    },
  );
});

const DESTINATION = new URL(
  '../../dist/platform/telemetry/output/log-destination.js',
  import.meta.url,
);

/** A program that writes a megabyte of log lines, and ends. */
const LOGGING = `
  const { LogDestination } = await import('${DESTINATION.href}');
  const log = new LogDestination(1, process.argv[1] === 'true');
  for (let n = 0; n < 1000; n += 1) log.write('x'.repeat(1023) + '\\n');
  setTimeout(() => process.exit(0), 10);
`;

describe('a pipe of which each write waits for its reader, as a shell makes it', () => {
  it.each([true, false])(
    'does not stop a process although no program reads, synchronous: %s',
    async (isSynchronous) => {
      await using parts = new AsyncDisposableStack();
      const folder = await makeTemporaryDirectory();
      parts.defer(() => removeDirectory(folder));
      execFileSync('mkfifo', [join(folder, 'pipe')]);
      const pipe = openSync(join(folder, 'pipe'), 'r+'); // both ends, and no program reads
      parts.defer(() => closeSync(pipe));
      const child = spawn(process.execPath, ['-e', LOGGING, String(isSynchronous)], {
        stdio: ['ignore', pipe, 'ignore'],
        timeout: 15_000,
        killSignal: 'SIGKILL',
      });
      expect(await once(child, 'exit')).toEqual([0, null]);
    },
  );
});
