import '../../support/full-scale-only.js';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { Client } from '../../support/client.js';
import { prepareDataDir } from '../../support/cluster-template.js';
import { freePort } from '../../support/free-port.js';
import { startLoad } from '../../support/load.js';
import { providerEnvironment, TEST_CLIENT } from '../../support/provider-environment.js';
import { startServerProcess, type ServerProcess } from '../../support/server-process.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

const TOKEN = 'the token of a scraper';

/**
 * The members of a JSON log line that this file reads. `worker` is the number of the worker that
 * wrote it.
 */
interface Line {
  readonly msg: string;
  readonly context?: string;
  readonly worker?: number;
}

describe('main.js --workers 2', () => {
  let folder: string;
  let idp: DemoIdentityProvider;
  let origin: string;
  let variables: Record<string, string>;
  let server: ServerProcess;

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    const port = await freePort();
    origin = `http://localhost:${port}`;
    const redirectUri = `${origin}/oauth/callback`;
    idp = await startDemoIdentityProvider({ ...TEST_CLIENT, redirectUri });
    await prepareDataDir(join(folder, 'data'));
    variables = {
      SVC_BASE_URL: origin,
      SVC_LISTEN_ADDR: `[::]:${port}`,
      SVC_DATA_DIR: join(folder, 'data'),
      SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1/128',
      SVC_METRICS_BEARER_TOKEN: TOKEN,
      ...providerEnvironment(idp.issuer),
      SVC_LOG_FORMAT: 'json',
      RUST_LOG: 'info,http=debug',
    };
    server = start('--workers', '2');
    await server.printed(/2 workers serve/);
  });
  afterAll(async () => {
    server.signal('SIGKILL');
    await server.ended;
    await idp.close();
    await removeDirectory(folder);
  });

  const start = (...entryArguments: string[]) =>
    startServerProcess('main.js', variables, { cwd: folder, entryArguments });
  const lines = () =>
    server
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line): Line => JSON.parse(line));
  /** Returns the number of workers that have begun to serve so far, ended ones included. */
  const timesServed = () => lines().filter(({ msg }) => msg.includes('is served on port')).length;
  const requestsOf = (worker: number) =>
    lines().filter((line) => line.context === 'http' && line.worker === worker);
  const workersThat = (served: string) =>
    new Set(
      requestsOf(1)
        .concat(requestsOf(2))
        .flatMap(({ msg, worker }) => (msg === served ? worker : [])),
    );
  /** Sends requests at the same time, each on a new connection. Returns their statuses. */
  const atOnce = (times: number, method: string, path: string, client = new Client(origin)) =>
    Promise.all(
      Array.from({ length: times }, () =>
        fetch(origin + path, {
          method,
          headers: {
            origin,
            'x-forwarded-for': client.address,
            'content-type': 'application/json',
            connection: 'close',
          },
          ...(method === 'POST' ? { body: '{}' } : {}),
        }).then(async (answer) => {
          await answer.arrayBuffer();
          return answer.status;
        }),
      ),
    );
  async function count(series: string): Promise<number> {
    const answer = await fetch(`${origin}/metrics`, {
      headers: { authorization: `Bearer ${TOKEN}`, connection: 'close' },
    });
    const line = (await answer.text()).split('\n').find((text) => text.startsWith(`${series} `));
    return Number(line?.slice(series.length));
  }
  const LIVE = 'http_requests_total{method="GET",path="/health",status="200"}';

  it('migrates once, and both workers serve the same port', async () => {
    expect(lines().filter(({ msg }) => msg.includes('embedded PostgreSQL is ready'))).toHaveLength(
      1,
    );
    while (timesServed() < 2) await delay(20);
    expect(new Set(await atOnce(20, 'GET', '/health'))).toEqual(new Set([200]));
    // one worker gets all 20 only once in 524,288 runs
    while (workersThat('GET /health 200').size < 2) await delay(20);
  });

  it('answers /metrics with the sum of both workers, whichever is asked', async () => {
    const before = await count(LIVE);
    expect(before).toBe(20);
    await atOnce(14, 'GET', '/health');
    // The kernel chooses the worker of each connection, so that this repeats until both have been
    // asked.
    for (let scrape = 0; scrape < 4 || workersThat('GET /metrics 200').size < 2; scrape += 1) {
      expect(await count(LIVE)).toBe(34);
    }
  });

  it('admits one burst of 20 attempts at once, on whichever workers they arrive', async () => {
    const client = new Client(origin);
    const attempts = (times: number) => atOnce(times, 'POST', '/login/webauthn/start', client);
    const began = performance.now();
    const statuses = await attempts(20);
    const refilled = Math.floor((performance.now() - began) / 2000);
    const admitted = statuses.filter((status) => status === 200).length;
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    expect(admitted).toBeGreaterThanOrEqual(8);
    expect(admitted).toBeLessThanOrEqual(8 + refilled);
    // One worker may have refused no request so far. The bucket is empty for both now, so that both
    // refuse soon.
    while (workersThat('POST /login/webauthn/start 429').size < 2) {
      await attempts(4);
      await delay(20);
    }
  });

  it('starts a worker again that is killed under requests, and loses no count', async () => {
    const before = await count(LIVE);
    const load = startLoad({ origin, paths: ['/health'], clients: 8, onFarewell: 'connect' });
    await load.reached(200);
    const known = await count(LIVE);
    process.kill(childOf(server.pid), 'SIGKILL');
    await server.printed(
      /worker \d \(process \d+\) ended by SIGKILL; it is started again in 250 ms/,
    );
    while (timesServed() < 3) await delay(20);
    await load.stop();

    expect(known).toBeGreaterThan(before);
    expect([...load.tally.answers.keys()]).toEqual([200]);
    // at most one request per client, at the killed worker
    expect(load.tally.lost.length).toBeLessThanOrEqual(8);
    expect(await count(LIVE)).toBeGreaterThanOrEqual(known);
    expect(new Set(await atOnce(20, 'GET', '/health/ready'))).toEqual(new Set([200]));
  });

  it('loses no count of a worker that SIGTERM drains and replaces', async () => {
    const before = await count(LIVE);
    await atOnce(20, 'GET', '/health');
    const served = timesServed();
    process.kill(childOf(server.pid), 'SIGTERM');
    while (timesServed() === served) await delay(20);
    expect(await count(LIVE)).toBe(before + 20);
  });

  it('lets no client wait for ever that connects in the moment in which a worker is killed', async () => {
    const stopping = new AbortController();
    const failures: string[] = [];
    const connecting = Array.from({ length: 16 }, async () => {
      while (!stopping.signal.aborted) {
        await fetch(`${origin}/health`, {
          headers: { connection: 'close' },
          signal: AbortSignal.timeout(20_000),
        })
          .then((answer) => answer.text())
          .catch(({ name }: Error) => void failures.push(name));
      }
    });
    for (let kill = 0; kill < 4; kill += 1) {
      const served = timesServed();
      process.kill(childOf(server.pid), 'SIGKILL');
      while (timesServed() === served) await delay(20);
    }
    stopping.abort();
    await Promise.all(connecting);

    // No request ran into its time limit, because the connections of the killed worker are reset at
    // once.
    expect(failures).not.toContain('TimeoutError');
  });

  it('drains at SIGTERM: no accepted request is lost, and the status is 0', async () => {
    const load = startLoad({ origin, paths: ['/health'], clients: 16, onFarewell: 'leave' });
    await load.reached(200);
    server.signal('SIGTERM');
    await load.done;
    expect(await server.ended).toBe(0);
    expect(load.tally).toMatchObject({ lost: [], refused: [], farewells: 16 });
    expect(existsSync(join(folder, 'data', 'postgres', 'postmaster.pid'))).toBe(false);
  });

  it('ends with the status of a worker that cannot start', async () => {
    const taken = new URL(origin).port;
    // Another service of the same user that has workers would share the port like this.
    const holder = createServer().listen({ port: Number(taken), host: '::', reusePort: true });
    await once(holder, 'listening');
    server = start('--workers=2');
    expect(await server.ended).toBe(1);
    holder.close();
    expect(server.output()).toMatch(/SVC_LISTEN_ADDR: cannot be listened on \(EADDRINUSE\)/);
    expect(server.output()).toMatch(/worker 1 .* ended with status 1 before it served/);
  });
});

/** Returns the process id of a worker of a server, from `/proc`. */
function childOf(primary: number): number {
  const children = readFileSync(`/proc/${primary}/task/${primary}/children`, 'utf8')
    .trim()
    .split(' ');
  const worker = children.find((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('main.js'),
  );
  if (worker === undefined) throw new Error('no worker runs');
  return Number(worker);
}
