import { once } from 'node:events';
import { createServer, request, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requestEdge } from '#platform/http/contract/edge-step.js';
import { RequestsInFlight } from '#platform/http/server/requests-in-flight.service.js';
import { stopServers } from '#platform/http/server/stop-servers.js';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';

describe('stopping servers', () => {
  let requests: RequestsInFlight;
  let taken: ServerResponse[];
  let server: ReturnType<typeof createServer>;
  let url: string;

  beforeEach(async () => {
    requests = new RequestsInFlight();
    taken = [];
    server = createServer(
      requestEdge([requests.track], (_request, response) => void taken.push(response)),
    );
    url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  });
  afterEach(() => stopServer(server));

  const ask = async () => {
    const sent = request(url).end();
    const answer = once(sent, 'response');
    answer.catch(() => undefined);
    await expect.poll(() => taken.length).toBe(1);
    return { answer, response: taken[0] as ServerResponse };
  };

  it('waits for the request in progress, and tells its client that the connection ends', async () => {
    const { answer, response } = await ask();
    const stopped = stopServers([server], requests, { drain: false, limit: 20_000 });
    await expect.poll(() => server.listening).toBe(false);
    requests.endConnection(response);
    response.end('whole');
    const [{ statusCode, headers }] = await answer;
    expect([statusCode, headers.connection]).toEqual([200, 'close']);
    expect(await stopped).toBe(0);
  });

  it('aborts and counts requests that take longer than the limit', async () => {
    const { answer } = await ask();
    expect(await stopServers([server], requests, { drain: false, limit: 100 })).toBe(1);
    await expect(answer).rejects.toThrow('socket hang up');
    await expect.poll(() => requests.count).toBe(0);
  });

  it('ends at once where no client is connected', async () => {
    expect(await stopServers([server], requests, { drain: false, limit: 20_000 })).toBe(0);
    expect(requests.isStopping).toBe(true);
  });
});
