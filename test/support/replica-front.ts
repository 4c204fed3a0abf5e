import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** A replica that can get requests from the proxy. */
export interface FrontTarget {
  readonly port: number;
  /** The number of open requests at this replica, which the proxy counts. */
  inFlight: number;
  /** The signal that ends the open requests when the health checks take the replica for dead. */
  readonly down?: AbortSignal | undefined;
}

/**
 * The response header with the port of the replica that answered. A response of the proxy itself
 * lacks it.
 */
export const SERVED_BY = 'x-served-by-port';

/** An HTTP proxy in front of replicas. It sends each request to the next replica in turn. */
export interface ReplicaFront {
  close(): void;
}

/**
 * Starts the proxy at a port of localhost. `running` returns the replicas that may get a request.
 */
export async function startReplicaFront(
  port: number,
  running: () => readonly FrontTarget[],
): Promise<ReplicaFront> {
  let turn = 0;
  const front = createServer((incoming, outgoing) => {
    turn += 1;
    const targets = running();
    const target = targets[turn % targets.length];
    if (target) forward(target, incoming, outgoing);
    else outgoing.writeHead(502).end('no replica is running');
  });
  front.listen(port, 'localhost');
  await once(front, 'listening');
  return {
    close: () => {
      front.closeAllConnections();
      front.close();
    },
  };
}

/** Resolves when no request of a replica is under way. */
export async function idle(target: FrontTarget): Promise<void> {
  while (target.inFlight > 0) await delay(10);
}

/** Forwards a request with its own Host header, on a new connection. */
function forward(target: FrontTarget, incoming: IncomingMessage, outgoing: ServerResponse): void {
  target.inFlight += 1;
  outgoing.on('close', () => {
    target.inFlight -= 1;
  });
  const onward = request({
    port: target.port,
    host: 'localhost',
    agent: false,
    method: incoming.method,
    path: incoming.url,
    headers: incoming.headers,
    ...(target.down ? { signal: target.down } : {}),
  });
  onward.on('response', (answer) => {
    answer.on('error', () => outgoing.destroy());
    outgoing.writeHead(answer.statusCode ?? 502, { ...answer.headers, [SERVED_BY]: target.port });
    answer.pipe(outgoing);
  });
  onward.on('error', (error) => {
    if (outgoing.headersSent) outgoing.destroy();
    else outgoing.writeHead(502).end(String(error));
  });
  incoming.pipe(onward);
}
