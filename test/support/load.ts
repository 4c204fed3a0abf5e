import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

/** The counts of the responses that the clients of a load got. */
export interface Tally {
  /** The number of complete responses, by status. */
  readonly answers: Map<number, number>;
  /** The number of responses with `Connection: close`. */
  farewells: number;
  /**
   * Requests that the server accepted and lost, so that there must be none. They got an incomplete
   * response, or no response on a connection that had served an earlier request.
   */
  readonly lost: string[];
  /**
   * Requests that did not reach the server, because their new connection was refused or was reset
   * at once.
   */
  readonly refused: string[];
}

/**
 * A load of clients. Each client sends its next request after the response, on the same connection.
 */
export interface Load {
  readonly tally: Tally;
  readonly total: number;
  /**
   * Resolves when all clients together have got so many responses. Throws if the clients end
   * before.
   */
  reached(count: number): Promise<void>;
  /** Sends no more requests, and waits for the open ones. */
  stop(): Promise<void>;
  /** Resolves when the last client has ended. */
  readonly done: Promise<void>;
}

/** The options of the clients. */
export interface LoadOptions {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly clients: number;
  /**
   * The reaction of a client to `Connection: close`. It ends (`leave`), as if a load balancer had
   * chosen another server, or it connects again (`connect`).
   */
  readonly onFarewell: 'leave' | 'connect';
  /** The milliseconds between a response and the client's next request; 0 by default. */
  readonly pause?: number;
  /** True if clients keep their connections open; this is the default. */
  readonly keepAlive?: boolean;
  /** The certificate authority that clients trust for https, in PEM. */
  readonly ca?: string;
}

/** Starts the clients, which send requests until `stop` is called. */
export function startLoad(options: LoadOptions): Load {
  const { origin, paths, clients, onFarewell, pause = 0, keepAlive = true, ca } = options;
  const { Agent, request } = origin.startsWith('https:') ? https : http;
  const tally: Tally = { answers: new Map(), farewells: 0, lost: [], refused: [] };
  const waiting: { count: number; resolve: () => void }[] = [];
  let total = 0;
  const stopping = new AbortController();

  const client = async (index: number): Promise<void> => {
    const agent = new Agent({ keepAlive, maxSockets: 1, ca, servername: 'localhost' });
    for (let turn = index; !stopping.signal.aborted; turn += 1) {
      const sent = request(origin + paths[turn % paths.length], { agent }).end();
      let answer: http.IncomingMessage | undefined;
      try {
        [answer] = (await once(sent, 'response')) as [http.IncomingMessage];
        await text(answer); // rejects if the body is incomplete
      } catch (error) {
        const told = `${sent.path} ${String(error)}`;
        if (!sent.reusedSocket && answer === undefined) {
          tally.refused.push(told);
          break; // the server has ended
        }
        tally.lost.push(told);
        continue;
      }
      total += 1;
      const status = answer.statusCode ?? 0;
      tally.answers.set(status, (tally.answers.get(status) ?? 0) + 1);
      for (const waiter of waiting) if (total >= waiter.count) waiter.resolve();
      if (answer.headers.connection === 'close') {
        tally.farewells += 1;
        if (onFarewell === 'leave') break;
      }
      if (pause > 0) await delay(pause);
    }
    agent.destroy();
  };

  const done = Promise.all(Array.from({ length: clients }, (_, index) => client(index))).then(
    () => undefined,
  );
  return {
    tally,
    get total() {
      return total;
    },
    async reached(count) {
      const counted = new Promise<void>((resolve) => waiting.push({ count, resolve }));
      await Promise.race([counted, done]);
      if (total < count) throw new Error(`the load ended early: ${JSON.stringify(tally)}`);
    },
    stop() {
      stopping.abort();
      return done;
    },
    done,
  };
}
