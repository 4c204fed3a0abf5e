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
import type { ParseErrorResponder } from './parse-error-responder.js';

/**
 * The time limits, and the responder to unreadable bytes, that all HTTP listeners of a process
 * share.
 */
export interface EdgeServerOptions {
  readonly timeouts: EdgeTimeouts;
  readonly parseErrorResponder: ParseErrorResponder;
}

/** The largest size of all headers of a request, in bytes. */
const MOST_HEADERS = 16 * 1024;

/**
 * The milliseconds between two checks of the connections' time limits. A connection may exceed its
 * limit by that much.
 */
const CHECK_EVERY = 1000;

/**
 * Node also has a time limit for a request. It is this number of milliseconds longer than ours, so
 * that it applies only if ours has failed.
 */
const GRACE = 5000;

/**
 * Makes the HTTP server of a listener.
 * @param tls the TLS options of a listener that terminates TLS; left out for plain HTTP
 */
export function edgeServer(edge: RequestListener, options: EdgeServerOptions): Server;
export function edgeServer(
  edge: RequestListener,
  options: EdgeServerOptions,
  tls: TlsServerOptions,
): TlsServer;
export function edgeServer(
  edge: RequestListener,
  { timeouts, parseErrorResponder }: EdgeServerOptions,
  tls?: TlsServerOptions,
): Server {
  const http: ServerOptions = {
    headersTimeout: timeouts.headers,
    requestTimeout: timeouts.headers + timeouts.request + GRACE,
    keepAliveTimeout: timeouts.keepAlive,
    connectionsCheckingInterval: CHECK_EVERY,
    maxHeaderSize: MOST_HEADERS,
    insecureHTTPParser: false, // NODE_OPTIONS must not change this
    requireHostHeader: false, // the host rule refuses requests without a host, with our headers
  };
  const server = tls
    ? createTlsServer({ ...http, ...tls, handshakeTimeout: timeouts.handshake })
    : createServer(http);
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    if (parseErrorResponder.follow(response)) edge(request, response);
  };
  // Requests with the header `Expect` pass the same steps. Without these listeners, Node would
  // answer them by itself.
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, serve);
  server.on('clientError', (error, socket) => parseErrorResponder.refuse(error, socket as Socket));
  server.on('connect', (_request, socket) => parseErrorResponder.refuseTunnel(socket));
  return server;
}
