import { createServer, request } from 'node:http';
import { pipeline } from 'node:stream';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';

/** A load balancer in front of replicas, which sends each request to the next replica in turn. */
export interface Balancer {
  /** The base URL of the service, which is that of the balancer: `http://localhost:{port}`. */
  readonly baseUrl: string;
  /** The URLs of the replicas. A test sets them after it has started the replicas. */
  replicas: readonly string[];
  /** The number of requests that were sent to each replica, by the replica's URL. */
  readonly served: Map<string, number>;
  close(): Promise<void>;
}

/** Starts a load balancer without replicas. */
export async function startBalancer(): Promise<Balancer> {
  let next = 0;
  const server = createServer((incoming, outgoing) => {
    const replica = balancer.replicas[next++ % balancer.replicas.length] ?? '';
    balancer.served.set(replica, (balancer.served.get(replica) ?? 0) + 1);
    const forwarded = request(new URL(incoming.url ?? '/', replica), {
      method: incoming.method ?? 'GET',
      headers: incoming.headers, // including the `Host` of the balancer
      agent: false,
    });
    forwarded.once('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      pipeline(answer, outgoing, () => undefined);
    });
    forwarded.once('error', () => outgoing.destroy());
    pipeline(incoming, forwarded, () => undefined);
  });
  const port = await listenOnLoopback(server);
  const balancer: Balancer = {
    baseUrl: `http://localhost:${port}`,
    replicas: [],
    served: new Map(),
    close: () => stopServer(server),
  };
  return balancer;
}
