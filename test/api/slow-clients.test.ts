import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { headOf, RawConnection } from '../support/raw-connection.js';
import type { RawAnswer } from '../support/raw-http.js';
import '../support/full-scale-only.js';

const MIB = 1024 ** 2;
const CROWD = 500;

/**
 * The longest that a correct client may wait for a response, in milliseconds, on a busy machine.
 */
const PROMPT = 3000;

/** 500 clients that never finish their requests. */
class Crowd {
  readonly #connections: readonly RawConnection[];
  #isOver = false;

  constructor(
    app: TestApp,
    beginning: () => string,
    private readonly drop: string,
  ) {
    this.#connections = Array.from({ length: CROWD }, () => new RawConnection(app.baseUrl));
    for (const { socket } of this.#connections) socket.write(beginning());
  }

  /** Sends `drop` on every connection each 100 ms, until {@link end} has seen all disconnected. */
  async dribble(): Promise<void> {
    while (!this.#isOver) {
      for (const { socket } of this.#connections) if (socket.writable) socket.write(this.drop);
      await delay(100);
    }
  }

  /** Waits until all connections are closed. Returns the responses. */
  async end(): Promise<RawAnswer[]> {
    const answers = await Promise.all(this.#connections.map((each) => each.farewell()));
    this.#isOver = true;
    return answers;
  }
}

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ timeouts: { headers: 3000, request: 3000, linger: 500 } });
});
afterAll(() => app.close());
beforeEach(() => {
  app.log.splice(0);
});

/**
 * Sends requests from new addresses until the attack is over. Returns the longest wait for a
 * response in milliseconds.
 */
async function slowestAnswer(isOver: () => boolean): Promise<number> {
  let slowest = 0;
  while (!isOver()) {
    for (const path of ['/health', '/login', '/v1/credentials/ssh/ca']) {
      const begun = performance.now();
      const answer = await app.client().get(path);
      slowest = Math.max(slowest, performance.now() - begun);
      expect([path, answer.status]).toEqual([path, 200]);
    }
    await delay(20);
  }
  return slowest;
}

describe(`${CROWD} slow clients`, () => {
  const attack = async (beginning: () => string, drop: string) => {
    const crowd = new Crowd(app, beginning, drop);
    const dribble = crowd.dribble();
    let isOver = false;
    const others = slowestAnswer(() => isOver);
    const answers = await crowd.end();
    isOver = true;
    await dribble;
    return { answers, slowest: await others };
  };

  it('with endless headers are disconnected with a 408, and no other client waits', async () => {
    const { answers, slowest } = await attack(
      () => headOf(app.baseUrl, 'GET /health').slice(0, -2),
      'X-Dribble: 1\r\n',
    );
    expect(tally(answers)).toEqual({ 'application/problem+json; charset=utf-8 408': CROWD });
    expect(slowest).toBeLessThan(PROMPT);
  });

  it('with endless bodies are disconnected with a 408 in the error format of the path', async () => {
    const headers = ['Content-Type: application/json', 'Transfer-Encoding: chunked'];
    const origin = `Origin: ${app.baseUrl}`;
    const { answers, slowest } = await attack(
      () => headOf(app.baseUrl, 'POST /login/webauthn/start', [...headers, origin]),
      '1\r\n \r\n',
    );
    expect(tally(answers)).toEqual({ 'application/problem+json; charset=utf-8 408': CROWD });
    expect(slowest).toBeLessThan(PROMPT);
    expect(app.log.filter((line) => line.includes('"level":"error"'))).toEqual([]);
  });

  it('that never send a byte are disconnected without a response', async () => {
    const { answers, slowest } = await attack(() => '', '');
    expect(tally(answers)).toEqual({ 'undefined NaN': CROWD });
    expect(slowest).toBeLessThan(PROMPT);
  });
});

describe('a body of a gigabyte in chunks', () => {
  it.each([
    ['where one is read', 413, 'POST /login/webauthn/start'],
    ['without a session', 401, 'POST /v1/credentials/ssh'],
    ['where nothing is', 404, 'POST /nothing'],
    ['where none is read', 200, 'GET /health'],
    ['where it is no request', 400, 'nonsense'],
  ])('%s is aborted early, and no other client waits', async (_, status, line) => {
    const headers = ['Content-Type: application/json', `Origin: ${app.baseUrl}`];
    const port = Number(new URL(app.baseUrl).port);
    // `allowHalfOpen`: the client continues to send after the server has closed its side.
    const socket = connect({ host: 'localhost', port, allowHalfOpen: true });
    const connection = new RawConnection(app.baseUrl, socket);
    connection.socket.write(headOf(app.baseUrl, line, [...headers, 'Transfer-Encoding: chunked']));
    let isOver = false;
    const others = slowestAnswer(() => isOver);
    const sent = await connection.pour(1024 * MIB);
    const answer = await connection.farewell();
    isOver = true;

    expect([answer.status, answer.header('connection')]).toEqual([status, 'close']);
    // far less than a gigabyte: a megabyte, and what the buffers of two sockets hold
    expect(sent).toBeLessThan(32 * MIB);
    expect(await others).toBeLessThan(PROMPT);
  });
});

/** Returns the number of responses by their media type and status. */
function tally(answers: readonly RawAnswer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const answer of answers) {
    const kind = `${answer.header('content-type')} ${answer.status}`;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}
