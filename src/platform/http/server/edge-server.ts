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

/** The parts that all listeners of a process share. */
export interface EdgeServerOptions {
  readonly timeouts: EdgeTimeouts;
  readonly parseErrorResponder: ParseErrorResponder;
}

/** The largest size of all headers of a request, in bytes. */
const MOST_HEADERS = 16 * 1024;

/**
 * Milliseconds between two checks of the time-outs of connections. A connection may exceed its time
 * by that much.
 */
const CHECK_EVERY = 1000;

/**
 * Milliseconds by which the deadline of Node exceeds ours, so that it only applies if ours has
 * failed.
 */
const GRACE = 5000;

/**
 * Makes the HTTP server of a listener.
 * @param tls the TLS options of a listener that ends TLS; left out for plain HTTP
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
    requireHostHeader: false, // the host rule refuses such requests, with our headers
  };
  const server = tls
    ? createTlsServer({ ...http, ...tls, handshakeTimeout: timeouts.handshake })
    : createServer(http);
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    if (parseErrorResponder.follow(response)) edge(request, response);
  };
  // Requests with an expectation pass the same steps; Node must not answer them by itself.
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, serve);
  server.on('clientError', (error, socket) => parseErrorResponder.refuse(error, socket as Socket));
  server.on('connect', (_request, socket) => parseErrorResponder.refuseTunnel(socket));
  return server;
}
