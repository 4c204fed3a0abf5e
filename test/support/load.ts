import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { text } from 'node:stream/consumers';

/** What became of the requests of a load. */
export interface Tally {
  /** Answered whole, by status. */
  readonly answers: Map<number, number>;
  /** Answers whose connection ends with them. */
  farewells: number;
  /** Requests on a connection that had answered before, which got no whole answer: what must never be. */
  readonly lost: string[];
  /** Requests that never reached anybody: their new connection was refused, or reset before it said a thing. */
  readonly refused: string[];
}

/** Clients that ask again as soon as they are answered, each on one connection at a time. */
export interface Load {
  readonly tally: Tally;
  readonly total: number;
  /** Resolves when so many requests were answered. */
  reached(count: number): Promise<void>;
  /** Asks no more, and waits for the answers that are due. */
  stop(): Promise<void>;
  /** Resolves when the last client has gone. */
  readonly done: Promise<void>;
}

/** How the clients behave. */
export interface LoadOptions {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly clients: number;
  /** At an answer that ends its connection: be gone, as behind a load balancer, or connect anew. */
  readonly onFarewell: 'leave' | 'connect';
  /** Whether they keep their connections: yes unless told. */
  readonly keepAlive?: boolean;
  /** Trusted for https. */
  readonly ca?: string;
}

/** Starts the clients. */
export function startLoad(options: LoadOptions): Load {
  const { origin, paths, clients, onFarewell, keepAlive = true, ca } = options;
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
        await text(answer); // rejects when it is cut short
      } catch (error) {
        const told = `${sent.path} ${String(error)}`;
        if (!sent.reusedSocket && answer === undefined) {
          tally.refused.push(told);
          break; // nobody is there any more
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
