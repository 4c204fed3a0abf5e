import { createServer, type RequestListener } from 'node:http';
import { describe, expect, it } from 'vitest';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { runSteps, type StepOutcome } from '../src/scenario/run-steps.js';
import { newScenario } from '../src/scenario/scenario.js';
import type { Step } from '../src/scenario/step.js';
import { HttpClient } from '../src/scenario/http-client.js';

describe('the steps of the scenario', () => {
  const holds: Step = { name: 'holds', run: async () => ({ line: 'well', result: { n: 1 } }) };
  const fails: Step = {
    name: 'fails',
    run: async () => {
      throw new Error('fetch failed', { cause: new Error('connection refused') });
    },
  };

  it('are printed as they end, and no step runs after one that fails', async () => {
    const context = newScenario({
      baseUrl: 'http://localhost:1',
      key: new SoftwareKey(),
      provider: 'demo',
      command: 'svc.mjs',
    });
    const outcomesSeen: StepOutcome[] = [];
    const outcomes = await runSteps([holds, fails, holds], context, (o) => outcomesSeen.push(o));
    expect(outcomes).toEqual(outcomesSeen);
    expect(outcomes).toMatchObject([
      { name: 'holds', ok: true, line: 'well', result: { n: 1 } },
      { name: 'fails', ok: false, error: 'fetch failed: connection refused' },
      { name: 'holds', ok: false, error: 'not tried, since a step before it failed' },
    ]);
  });
});

describe('the HTTP client of the demo', () => {
  /** Runs a test with a client of a new server, which is stopped at the end of the test. */
  async function withServer(
    requests: RequestListener,
    test: (client: HttpClient) => Promise<void>,
  ): Promise<void> {
    const server = createServer(requests);
    const port = await listenOnLoopback(server);
    try {
      await test(new HttpClient(`http://127.0.0.1:${port}`));
    } finally {
      await stopServer(server);
    }
  }

  it('waits for the time that a 429 asks for, and retries', async () => {
    const arrivals: number[] = [];
    await withServer(
      (_, response) => {
        arrivals.push(performance.now());
        response.writeHead(arrivals.length === 1 ? 429 : 200, { 'retry-after': '1' }).end();
      },
      async (client) => {
        expect((await client.get('/')).status).toBe(200);
        expect((arrivals[1] ?? 0) - (arrivals[0] ?? 0)).toBeGreaterThan(990);
      },
    );
  });

  it('stops after a limited number of redirects', async () => {
    await withServer(
      (_, response) => response.writeHead(303, { location: '/' }).end(),
      async (client) => {
        await expect(client.get('/')).rejects.toThrow('leads in a circle');
      },
    );
  });

  it('sends cookies back until the server deletes them', async () => {
    const seen: (string | undefined)[] = [];
    await withServer(
      (request, response) => {
        seen.push(request.headers.cookie);
        const maxAge = request.url === '/out' ? 0 : 60;
        response.setHeader('set-cookie', `svc_session=x; Path=/; Max-Age=${maxAge}`).end();
      },
      async (client) => {
        for (const path of ['/in', '/out', '/']) await client.get(path);
        expect(seen).toEqual([undefined, 'svc_session=x', undefined]);
      },
    );
  });
});
