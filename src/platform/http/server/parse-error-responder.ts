import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { newUuid } from '#platform/clock/random.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorRenderer } from '#platform/http/errors/error-renderer.service.js';
import { peerAddressOf } from '#platform/http/request/client-address.js';
import { INTERACTION_ID } from '#platform/http/request/interaction-id.js';
import { swallowLateWrites } from '#platform/http/edge/late-writes.js';
import { closeLingeringly } from '#platform/http/edge/lingering-close.js';
import type { EdgeHeaders } from '#platform/http/edge/response-headers.js';
import { isEncrypted, type HeaderLine } from '#platform/http/contract/kept-headers.js';
import { UNMATCHED_POLICY } from '#platform/http/routing/route-policy.js';
import { rawResponse } from './raw-response.js';

/**
 * The error and its text for each code of Node that does not mean malformed bytes. All other codes
 * that begin with `HPE_` mean malformed bytes.
 */
const FAULTS: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: ['timed_out', 'The request arrived too slowly. Send it again.'],
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'The headers are too large.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['body_too_large', 'The extensions of a chunk are too large.'],
};

/** The settings and functions for responding to bytes that are no request. */
export interface ParseErrorOptions {
  readonly headersOf: EdgeHeaders;
  /** Returns the headers about the rate limit of a client, by the client's IP address. */
  readonly limitsOf: (address: string | undefined) => readonly HeaderLine[];
  readonly errorRenderer: ErrorRenderer;
  /** Writes the log lines of the target `http`. */
  readonly logger: Logger;
  /** The time that a refused client has to read the response, in milliseconds. */
  readonly linger: number;
  /**
   * Is called with the status of each response to bytes that are no request, and with the method if
   * it could be read.
   */
  readonly onRawResponse: (status: number, method?: string) => void;
  /**
   * Returns true after the stop of the service has begun. From then on, each response closes its
   * connection. If this function is left out, the stop counts as not begun.
   */
  readonly isStopping?: () => boolean;
}

/**
 * The largest number of requests of one connection that may wait for their responses. Clients that
 * send requests without waiting (pipelining) send fewer.
 */
const MOST_WAITING = 32;

const RESPONSES = Symbol('responses of the connection, in their order');
const REFUSED = Symbol('whether the connection is refused');
type Connection = Socket & { [RESPONSES]?: ServerResponse[]; [REFUSED]?: true };

/** A refusal of bytes that are no request. */
interface RawRefusal {
  readonly error: DomainError;
  readonly method?: string;
  readonly headers?: readonly HeaderLine[];
}

/**
 * Responds to bytes that Node would answer by itself, without the headers that every response
 * needs. They are malformed requests, requests that arrive too slowly, requests with too large a
 * head, and CONNECT.
 */
export class ParseErrorResponder {
  constructor(private readonly options: ParseErrorOptions) {}

  /**
   * Remembers a response for its connection, and forgets earlier ones that are closed. The newest
   * one is always kept, because unreadable bytes that arrive later may be the rest of the body of
   * its request.
   *
   * @returns false for a request that must not be served, because an earlier response closes the
   *   connection (RFC 9112 §9.6). If too many responses wait already, this response will close it:
   *   a client that sends requests without reading responses would fill the memory.
   */
  follow(response: ServerResponse): boolean {
    const { socket } = response.req as { readonly socket: Connection };
    const responses = (socket[RESPONSES] ??= []);
    const latest = responses.at(-1);
    if (latest && this.#isLast(latest)) {
      socket.pause(); // no more bytes are read
      return false;
    }
    while (responses[0]?.closed && responses.length > 1) responses.shift();
    if (responses.push(response) > MOST_WAITING) response.setHeader('Connection', 'close');
    return true;
  }

  /** Returns true for a response after which its connection is closed. */
  #isLast(response: ServerResponse): boolean {
    if (response.getHeader('connection') === 'close') return true;
    return !response.headersSent && this.options.isStopping?.() === true;
  }

  /** Handles the event `clientError` of a server: it responds to bytes that are no request. */
  refuse(fault: Error, socket: Connection): void {
    if (socket[REFUSED]) return; // the client continues to send while the connection closes
    const latest = socket[RESPONSES]?.at(-1);
    const error = errorOf(fault);
    if (!error || !socket.writable || isSilent(socket) || isHalfAnswered(latest)) {
      socket.destroy();
      return;
    }
    socket[REFUSED] = true;
    if (latest === undefined || latest.req.complete) this.#respondInOrder(socket, { error });
    else {
      this.options.errorRenderer.render(error, latest.req, latest);
      swallowLateWrites(latest);
    }
  }

  /**
   * Handles the event `connect` of a server, which the method CONNECT causes: the service offers no
   * tunnels.
   */
  refuseTunnel(stream: Duplex): void {
    const socket = stream as Connection;
    takeOver(socket);
    if (socket[REFUSED]) return;
    socket[REFUSED] = true;
    this.#respondInOrder(socket, TUNNEL);
  }

  /**
   * Responds after the responses to earlier requests of the same connection, because the client
   * reads responses in the order of its requests.
   */
  #respondInOrder(socket: Connection, refusal: RawRefusal): void {
    const latest = socket[RESPONSES]?.at(-1);
    if (latest === undefined || latest.closed) this.#respond(socket, refusal);
    else latest.once('close', () => this.#respond(socket, refusal));
  }

  #respond(socket: Connection, { error, method, headers: special = [] }: RawRefusal): void {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    const { errorRenderer, headersOf, limitsOf, linger, logger, onRawResponse } = this.options;
    const interactionId = newUuid();
    const headers = [
      ...headersOf({ audience: UNMATCHED_POLICY.audience, encrypted: isEncrypted({ socket }) }),
      ...limitsOf(peerAddressOf(socket)),
      [INTERACTION_ID, interactionId] as const,
      ...special,
    ];
    socket.write(rawResponse(error.status, errorRenderer.problem(error), headers));
    closeLingeringly(socket, linger);
    logger.info({ context: 'http', interactionId }, `unreadable ${error.status}`);
    onRawResponse(error.status, method);
  }
}

const TUNNEL: RawRefusal = {
  error: new DomainError('method_not_allowed', 'The method CONNECT is not supported.'),
  method: 'CONNECT',
  // The methods that the client can use instead (RFC 9110 §15.5.6).
  headers: [['Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS']],
};

/**
 * Handles the errors of a connection after CONNECT. Node does not handle them any more, and an
 * unhandled error would end the process. When the connection closes, its responses that still wait
 * are ended too.
 */
function takeOver(socket: Connection): void {
  socket.on('error', () => undefined); // 'close' follows
  socket.once('close', () => socket[RESPONSES]?.forEach((response) => response.destroy()));
}

/**
 * Returns true if the client of a connection has sent no byte, and so gets no response. Browsers
 * open connections before they need them, and would show an error for a request that they never
 * made.
 */
function isSilent(socket: Socket): boolean {
  return socket.bytesRead === 0;
}

/**
 * Returns true for a response that has begun although its request never arrived completely. No
 * second response may be sent for the same request.
 */
function isHalfAnswered(latest: ServerResponse | undefined): boolean {
  return latest !== undefined && latest.headersSent && !latest.req.complete;
}

/**
 * Returns the error with which to respond to a fault of Node. Undefined if the connection or its
 * TLS handshake failed, because no response can be sent then.
 */
function errorOf(fault: Error): DomainError | undefined {
  const code = 'code' in fault ? String(fault.code) : '';
  const known = FAULTS[code];
  if (known) return new DomainError(...known);
  if (!code.startsWith('HPE_')) return undefined;
  return new DomainError('invalid_request', 'The request cannot be read.');
}
