import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import {
  createServer as createTlsServer,
  type Server as TlsServer,
  type ServerOptions as TlsServerOptions,
} from 'node:https';
import type { Socket } from 'node:net';
import type { EdgeTimeouts } from '#platform/http/edge/edge-timeouts.js';
import type { UnreadableRequests } from './unreadable-requests.js';

/** What the listeners of a process share. */
export interface EdgeServerOptions {
  readonly timeouts: EdgeTimeouts;
  readonly unreadable: UnreadableRequests;
}

/** Of all headers of a request, in bytes. */
const MOST_HEADERS = 16 * 1024;

/** How often connections are looked at, in milliseconds: what they may take longer than they may. */
const CHECK_EVERY = 1000;

/** What Node gives a request beyond our own deadline, in milliseconds: it is there where that one is not. */
const GRACE = 5000;

/** Makes the HTTP server of a listener. @param tls for a listener that ends TLS */
export function edgeServer(edge: RequestListener, options: EdgeServerOptions): Server;
export function edgeServer(
  edge: RequestListener,
  options: EdgeServerOptions,
  tls: TlsServerOptions,
): TlsServer;
export function edgeServer(
  edge: RequestListener,
  { timeouts, unreadable }: EdgeServerOptions,
  tls?: TlsServerOptions,
): Server {
  const http: ServerOptions = {
    headersTimeout: timeouts.headers,
    requestTimeout: timeouts.headers + timeouts.request + GRACE,
    keepAliveTimeout: timeouts.keepAlive,
    connectionsCheckingInterval: CHECK_EVERY,
    maxHeaderSize: MOST_HEADERS,
    insecureHTTPParser: false, // whatever NODE_OPTIONS says
    requireHostHeader: false, // the rule about hosts says it, with our headers
  };
  const server = tls
    ? createTlsServer({ ...http, ...tls, handshakeTimeout: timeouts.handshake })
    : createServer(http);
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    if (unreadable.follow(response)) edge(request, response);
  };
  // Expectations too are requests: what becomes of them is decided on their way, and never by Node.
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, serve);
  server.on('clientError', (error, socket) => unreadable.refuse(error, socket as Socket));
  server.on('connect', (_request, socket) => unreadable.refuseTunnel(socket));
  return server;
}
