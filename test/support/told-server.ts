import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * The answer of a receiver: a status, or a status with headers and a body. `hang` means no answer
 * at all, and `flood` means a body of 100 MB.
 */
export type ReceiverAnswer =
  | number
  | 'hang'
  | 'flood'
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    };

/** A server of an application to which the service sends logout notices or security events. */
export interface ToldServer<Received> {
  readonly uri: string;
  readonly received: Received[];
  /** Returns the largest number of requests that were in progress at the same time. */
  readonly most: () => number;
  /**
   * Returns the answer to the request `n`, counted from 1. A test can set another function. If it
   * returns a promise, the request waits.
   */
  answer: (n: number, request: Received) => ReceiverAnswer | Promise<ReceiverAnswer>;
  close(): Promise<void>;
}

/** The differences between the servers for logout notices and for security events. */
export interface ToldServerOptions<Received> {
  readonly path: string;
  /**
   * Returns what tests compare of a request. It gets the request and its body, as text and as
   * bytes.
   */
  readonly read: (body: string, request: IncomingMessage, bytes: Buffer) => Received;
  /** The status of each answer until a test changes `answer`. */
  readonly status: number;
}

/** Starts a server on loopback that records each request. */
export async function startToldServer<Received>({
  path,
  read,
  status: usual,
}: ToldServerOptions<Received>): Promise<ToldServer<Received>> {
  const received: Received[] = [];
  let underWay = 0;
  let most = 0;
  const server = createServer((request, response) => void take(request, response));
  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    underWay += 1;
    most = Math.max(most, underWay);
    response.on('close', () => {
      underWay -= 1;
    });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    const one = read(bytes.toString(), request, bytes);
    received.push(one);
    await give(await receiver.answer(received.length, one), response);
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const receiver: ToldServer<Received> = {
    uri: `http://127.0.0.1:${port}${path}`,
    received,
    most: () => most,
    answer: () => usual,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return receiver;
}

async function give(answer: ReceiverAnswer, response: ServerResponse): Promise<void> {
  if (answer === 'hang') return;
  if (answer === 'flood') {
    await flood(response);
    return;
  }
  const full = typeof answer === 'number' ? { status: answer } : answer;
  response.writeHead(full.status, { ...full.headers }).end(full.body ?? '');
}

/** Sends 100 MB, unless the client closes the connection before. */
async function flood(response: ServerResponse): Promise<void> {
  const part = Buffer.alloc(1_000_000, 'x');
  response.writeHead(200);
  for (let sent = 0; sent < 100 && !response.destroyed; sent += 1) {
    if (!response.write(part))
      await Promise.race([once(response, 'drain'), once(response, 'close')]);
  }
  response.end();
}
