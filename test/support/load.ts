import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

/** The counts of the responses that the clients of a load got. */
export interface Tally {
  /** The number of complete responses, by status. */
  readonly answers: Map<number, number>;
  /** The number of responses after which the server closed the connection. */
  farewells: number;
  /**
   * Requests that got an incomplete response, or none on a connection that had served an earlier
   * request. There must be no such request, because the server has accepted and lost it.
   */
  readonly lost: string[];
  /**
   * Requests that did not reach the server, because their new connection was refused or was reset
   * at once.
   */
  readonly refused: string[];
}

/**
 * A load of requests: clients that each send the next request after a response, on one connection.
 */
export interface Load {
  readonly tally: Tally;
  readonly total: number;
  /**
   * Resolves after so many responses of all clients together. Rejects if the clients end before.
   */
  reached(count: number): Promise<void>;
  /** Sends no more requests, and waits for the pending responses. */
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
   * The reaction of a client to a response that closes its connection: it ends (`leave`), as behind
   * a load balancer, or it connects again.
   */
  readonly onFarewell: 'leave' | 'connect';
  /** The milliseconds that a client waits after each response; none by default. */
  readonly pause?: number;
  /** True if clients keep their connections open; this is the default. */
  readonly keepAlive?: boolean;
  /** The trusted authority for https. */
  readonly ca?: string;
}

/** Starts the clients. */
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
        await text(answer); // rejects when the body is cut short
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
