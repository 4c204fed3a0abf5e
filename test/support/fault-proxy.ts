import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * The way in which the proxy treats a request. It forwards it (`none`), never answers (`hang`),
 * cuts the connection (`cut`), or sends the given response.
 */
export type Fault =
  | 'none'
  | 'hang'
  | 'cut'
  | {
      readonly status: number;
      readonly body: string;
      readonly headers?: Readonly<Record<string, string>>;
    };

/** A request that the proxy received. */
export interface SeenRequest {
  /** The header `x-amz-target`, which names the operation of KMS; empty for other services. */
  readonly target: string;
  /** The method and the path, such as `PUT /bucket/key`, without the query. */
  readonly line: string;
  readonly body: string;
}

/** A proxy in front of one HTTP server, in which a test switches faults on and off. */
export interface FaultProxy {
  readonly endpoint: string;
  /** The way in which the proxy treats requests from now on. */
  fault: Fault;
  /** The number of requests that the proxy has received. */
  readonly requests: number;
  /** The requests that the proxy has received completely, with their bodies. */
  readonly seen: readonly SeenRequest[];
  close(): Promise<void>;
}

/** Starts a proxy on loopback that forwards to `target`, an origin, and keeps the Host header. */
export async function startFaultProxy(target: string): Promise<FaultProxy> {
  let requests = 0;
  const seen: SeenRequest[] = [];
  const proxy = { fault: 'none' as Fault };
  const server = createServer((incoming, outgoing) => {
    requests += 1;
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const operation = String(incoming.headers['x-amz-target'] ?? '');
      const line = `${incoming.method} ${incoming.url?.split('?')[0]}`;
      seen.push({ target: operation, line, body: Buffer.concat(chunks).toString() });
    });
    const { fault } = proxy;
    if (fault === 'none') forward(target, incoming, outgoing);
    else if (fault === 'cut') incoming.socket.destroy();
    else if (fault !== 'hang') {
      incoming.resume();
      outgoing.writeHead(fault.status, fault.headers).end(fault.body);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get fault() {
      return proxy.fault;
    },
    set fault(fault) {
      proxy.fault = fault;
    },
    seen,
    get requests() {
      return requests;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function forward(target: string, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const onward = request(new URL(incoming.url ?? '/', target), {
    method: incoming.method,
    headers: incoming.headers,
  });
  onward.on('response', (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on('error', () => incoming.socket.destroy());
  incoming.pipe(onward);
}
