import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { prepareDataDir } from '../support/cluster-template.js';
import { freePort } from '../support/free-port.js';
import { startLoad } from '../support/load.js';
import { atScale } from '../support/scale.js';
import { startServerProcess, type ServerProcess } from '../support/server-process.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import { providerEnvironment, TEST_CLIENT } from '../support/provider-environment.js';
import '../support/full-scale-only.js';

describe('SIGTERM', () => {
  let folder: string;
  let idp: DemoIdentityProvider;
  let origin: string;
  let server: ServerProcess;

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    const port = await freePort();
    origin = `http://localhost:${port}`;
    idp = await startDemoIdentityProvider({
      ...TEST_CLIENT,
      redirectUri: `${origin}/oauth/callback`,
    });
  });
  afterAll(async () => {
    await idp.close();
    await removeDirectory(folder);
  });
  /**
   * Starts the service before each test on the data that the last stop left, which must be
   * undamaged.
   */
  beforeEach(async () => {
    await prepareDataDir(join(folder, 'data'));
    server = startServerProcess(
      'main.js',
      {
        SVC_BASE_URL: origin,
        SVC_LISTEN_ADDR: `[::]:${new URL(origin).port}`,
        SVC_DATA_DIR: join(folder, 'data'),
        ...providerEnvironment(idp.issuer),
        SVC_LOG_FORMAT: 'json',
        RUST_LOG: 'info,http=debug', // logs probes such as GET /health too
      },
      { cwd: folder },
    );
    await server.printed(/is served on port/);
  });
  afterEach(async () => {
    server.signal('SIGKILL');
    await server.ended;
  });

  /** Returns the log lines about requests, such as `GET /health 200`. */
  const served = (): string[] =>
    server
      .output()
      .trim()
      .split('\n')
      .map((line): { context?: string; msg: string } => JSON.parse(line))
      .filter(({ context }) => context === 'http')
      .map(({ msg }) => msg);
  const database = () => join(folder, 'data', 'postgres', 'postmaster.pid');

  it('under the load of 32 connections loses no request, and exits with status 0', async () => {
    const paths = ['/', '/health', '/health/ready'];
    const load = startLoad({ origin, paths, clients: 32, onFarewell: 'leave' });
    await load.reached(500);
    expect(existsSync(database())).toBe(true);
    const before = load.total;
    server.signal('SIGTERM');
    await load.done; // each client leaves after a response with `Connection: close`
    expect(await server.ended).toBe(0);

    expect(load.tally).toMatchObject({ lost: [], refused: [], farewells: 32 });
    expect(load.total).toBeGreaterThan(before);
    expect([...load.tally.answers.keys()].toSorted()).toEqual(expect.arrayContaining([200]));
    expect(served().filter((line) => line.endsWith('aborted'))).toEqual([]);
    expect(served()).toHaveLength(load.total);
    expect(existsSync(database())).toBe(false);
  });

  it('answers every accepted request, even from clients that stay connected', async () => {
    // These clients send requests until the drain ends, which takes ten seconds.
    const pause = atScale({ small: 100, full: 0 });
    const load = startLoad({
      origin,
      paths: ['/health'],
      clients: 32,
      onFarewell: 'connect',
      pause,
    });
    await load.reached(500);
    server.signal('SIGTERM');
    await load.done; // each client ends when its connection is refused
    expect(await server.ended).toBe(0);

    expect(load.tally.lost).toEqual([]);
    expect(load.tally.refused).toHaveLength(32);
    expect(served().filter((line) => !line.endsWith(' 200'))).toEqual([]);
    expect(served()).toHaveLength(load.total);
  });

  it('ends readiness first, and answers requests that are still being sent', async () => {
    const slow = request(`${origin}/login/webauthn/start`, {
      method: 'POST',
      headers: { origin, 'content-type': 'application/json', 'content-length': 2 },
    });
    slow.write('{');
    await once(slow, 'socket');
    const probing = startLoad({
      origin,
      paths: ['/health/ready'],
      clients: 1,
      onFarewell: 'leave',
    });
    await probing.reached(5);
    server.signal('SIGTERM');
    server.signal('SIGTERM'); // a second signal changes nothing
    await probing.done;
    const ready = await fetch(`${origin}/health/ready`);
    expect([ready.status, await ready.json()]).toEqual([
      503,
      { status: 'not_ready', reason: 'stopping' },
    ]);
    expect(ready.headers.get('connection')).toBe('close');
    // liveness stays 200, so that an orchestrator does not kill the process
    expect((await fetch(`${origin}/health`)).status).toBe(200);

    await expect.poll(() => isRefused(origin)).toBe(true);
    server.signal('SIGINT');
    slow.end('}');
    const [answer] = (await once(slow, 'response')) as [IncomingMessage];
    expect([answer.statusCode, answer.headers.connection]).toEqual([200, 'close']);
    expect(await json(answer)).toHaveProperty('publicKey.challenge');
    expect(await server.ended).toBe(0);
    expect(existsSync(database())).toBe(false);
  });

  it('serves no request that follows one which was in progress, whose response ends the connection', async () => {
    const socket = connect(Number(new URL(origin).port), 'localhost');
    let received = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => (received += chunk));
    const host = `Host: ${new URL(origin).host}`;
    socket.write(
      `POST /login/webauthn/start HTTP/1.1\r\n${host}\r\nOrigin: ${origin}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{`,
    );
    const ready = () => fetch(`${origin}/health/ready`).then(({ status }) => status);
    await expect.poll(ready).toBe(200);
    server.signal('SIGTERM');
    await expect.poll(ready).toBe(503);
    socket.write(`}GET /health HTTP/1.1\r\n${host}\r\n\r\n`);
    await once(socket, 'close');
    expect(received.match(/^HTTP\/1\.1 .*$/gm)).toEqual(['HTTP/1.1 200 OK']);
    expect(received).toMatch(/^connection: close\r$/im);
    expect(await server.ended).toBe(0);
    expect(served().filter((line) => line.includes('/health ')).length).toBe(0);
  });

  it('does not wait for silent clients', async () => {
    const { port } = new URL(origin);
    const silent = connect(Number(port), 'localhost');
    const halfway = connect(Number(port), 'localhost');
    await Promise.all([once(silent, 'connect'), once(halfway, 'connect')]);
    halfway.write('GET /health HTTP/1.1\r\nHost: ');
    await delay(100);
    const gone = [silent, halfway].map((socket) => once(socket.resume(), 'close').catch(() => []));
    const start = performance.now();
    server.signal('SIGTERM');
    expect(await server.ended).toBe(0);
    expect(performance.now() - start).toBeLessThan(15_000);
    await Promise.all(gone);
  });
});

async function isRefused(origin: string): Promise<boolean> {
  const { port } = new URL(origin);
  const socket = connect(Number(port), 'localhost');
  try {
    await once(socket, 'connect');
    return false;
  } catch {
    return true;
  } finally {
    socket.destroy();
  }
}
