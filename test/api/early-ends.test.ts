import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { prepareDataDir } from '../support/cluster-template.js';
import { freePort } from '../support/free-port.js';
import { providerEnvironment, TEST_CLIENT } from '../support/provider-environment.js';
import { startServerProcess, type ServerProcess } from '../support/server-process.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

/** Returns the Node arguments that run a script before the entry point. */
const before = (script: string) => [`--import=data:text/javascript,${encodeURIComponent(script)}`];

/**
 * Arguments that make the process write a line to stderr as soon as it has a handler for SIGTERM.
 */
const TELLS = before(`import { writeSync } from 'node:fs';
process.on('newListener', (name) => {
  if (name === 'SIGTERM') setImmediate(() => writeSync(2, 'handles SIGTERM\\n'));
});`);

/**
 * Returns arguments that make the process throw or reject an error with a secret when it gets
 * SIGUSR2.
 */
const FAILS = (how: string) =>
  before(`process.on('SIGUSR2', () => {
  const secret = ['planted', 'secret'].join('-'); // a stack has the text of this script
  const error = Object.assign(new Error('planted-fault'), { parameters: [secret] });
  ${how}
});`);

describe('the end of a process', () => {
  let folder: string;
  let origin: string;
  let idp: DemoIdentityProvider;
  const running: ServerProcess[] = [];

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    origin = `http://localhost:${await freePort()}`;
    const redirectUri = `${origin}/oauth/callback`;
    idp = await startDemoIdentityProvider({ ...TEST_CLIENT, redirectUri });
    await prepareDataDir(join(folder, 'data'));
  });
  afterAll(async () => {
    for (const server of running) {
      server.signal('SIGKILL');
      await server.ended;
    }
    await idp.close();
    await removeDirectory(folder);
  });

  function start(
    entry: string,
    nodeArguments: string[],
    entryArguments: string[] = [],
    dataDir = join(folder, 'data'),
  ) {
    const ofService = {
      SVC_BASE_URL: origin,
      SVC_LISTEN_ADDR: `[::]:${new URL(origin).port}`,
      ...providerEnvironment(idp.issuer),
    };
    const environment = {
      SVC_DATA_DIR: dataDir,
      SVC_LOG_FORMAT: 'json',
      ...(entry === 'main.js' ? ofService : {}),
    };
    const options = { cwd: folder, nodeArguments, entryArguments };
    const server = startServerProcess(entry, environment, options);
    running.push(server);
    return server;
  }
  const pidOfDatabase = async () =>
    Number((await readFile(join(folder, 'data/postgres/postmaster.pid'), 'utf8')).split('\n')[0]);

  it.each([
    ['main.js', 'SIGTERM', 143],
    ['main.js', 'SIGINT', 130],
    ['migrate.js', 'SIGTERM', 143],
  ] as const)(
    'of %s comes at once at an early %s, with status %i',
    async (entry, signal, status) => {
      // Its own directory: the watchdog may still stop the database of an ended process.
      const dataDir = join(folder, `of-${entry}-${signal}`);
      await prepareDataDir(dataDir);
      const server = start(entry, TELLS, [], dataDir);
      await server.printed(/handles SIGTERM/);
      const began = performance.now();
      server.signal(signal);
      expect(await server.ended).toBe(status);
      expect(performance.now() - began).toBeLessThan(5_000);
      const isReport = (line: string) => line.includes('"level":"info"');
      const others = server.output().split('\n');
      expect(others.filter((line) => !isReport(line))).toEqual(['handles SIGTERM', '']);
    },
  );

  it.each([
    ['main.js', []],
    ['main.js', ['--workers', '2']],
    ['migrate.js', []],
  ])('of %s %j stops the embedded database of an unfinished start', async (entry, given) => {
    const server = start(entry, [], given);
    await server.printed(/embedded PostgreSQL is ready/);
    const database = await pidOfDatabase();
    server.signal('SIGTERM');
    expect([143, 0]).toContain(await server.ended); // 0 if the start was complete before the signal
    await expect.poll(() => isAlive(database)).toBe(false);
  });

  it.each([
    ['throw error;', '1'],
    ['Promise.reject(error);', '1'],
    ['Promise.reject(secret);', '1'],
    ['throw error;', '2'],
  ])(
    'follows %s with status 1, and the log has the error without secrets: %s worker(s)',
    async (how, workers) => {
      const server = start('main.js', FAILS(how), ['--workers', workers]);
      await server.printed(workers === '1' ? /is served on port/ : /2 workers serve/);
      server.signal('SIGUSR2');
      expect(await server.ended).toBe(1);
      const lines = server.output().trim().split('\n');
      const last = lines
        .filter((line) => line.startsWith('{'))
        .map((line): Record<string, unknown> => JSON.parse(line))
        .find(({ level }) => level === 'fatal');
      const err = how.includes('error') ? { message: 'planted-fault' } : 'string';
      expect(last).toMatchObject({ context: 'process', err });
      expect(server.output()).not.toContain('planted-secret');
    },
  );
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
