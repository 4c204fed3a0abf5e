import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { newUuid } from '#platform/clock/random.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorVoices } from '#platform/http/errors/error-renderer.service.js';
import { peerAddressOf } from '#platform/http/request/client-address.js';
import { INTERACTION_ID } from '#platform/http/request/interaction-id.js';
import { swallowLateWrites } from '#platform/http/edge/late-writes.js';
import { closeLingeringly } from '#platform/http/edge/lingering-close.js';
import { rawAnswer } from './raw-answer.js';
import {
  isEncrypted,
  type EdgeHeaders,
  type HeaderLine,
} from '#platform/http/contract/response-headers.js';

/** What belongs to no path; of all classes it is in the strictest. */
const NO_PATH = '*';

/** What Node says of a connection, by its code, when it is not simply malformed. */
const FAULTS: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: ['timed_out', 'The request arrived too slowly. Send it again.'],
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'The headers are too large.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['body_too_large', 'The extensions of a chunk are too large.'],
};

/** What answers need to be ours where no request came to be. */
export interface UnreadableRequestsOptions {
  readonly headersOf: EdgeHeaders;
  /** The headers about the limit of a client, by its address. */
  readonly limitsOf: (address: string | undefined) => readonly HeaderLine[];
  readonly voices: ErrorVoices;
  /** Takes the lines of the target `http`. */
  readonly logger: Logger;
  /** How long a refused client may take to read the answer, in milliseconds. */
  readonly linger: number;
  /** Told the status of each answer that no request stands for, and the method where one was read. */
  readonly onRawAnswer: (status: number, method?: string) => void;
}

/** How many requests of one connection may wait for their answers: clients that pipeline at all send fewer. */
const MOST_WAITING = 32;

const RESPONSES = Symbol('responses of the connection, in their turn');
const REFUSED = Symbol('whether the connection is refused');
type Connection = Socket & { [RESPONSES]?: ServerResponse[]; [REFUSED]?: true };

/** A refusal that is not the answer to a request. */
interface Refusal {
  readonly error: DomainError;
  readonly method?: string;
  readonly headers?: readonly HeaderLine[];
}

/**
 * Answers what Node would answer by itself, without a header of ours: requests that cannot be read, that come too slowly or
 * are too large in their heads, and CONNECT.
 */
export class UnreadableRequests {
  constructor(private readonly options: UnreadableRequestsOptions) {}

  /**
   * Remembers the responses that a connection waits for: what cannot be read may be the body of the newest one's request.
   *
   * @returns whether the request is one to serve. What follows the last answer of a connection is none (RFC 9112 §9.6), and
   *   that is the last one where too many wait already: whoever sends on without reading would have us hold it all.
   */
  follow(response: ServerResponse): boolean {
    const { socket } = response.req as { readonly socket: Connection };
    const responses = (socket[RESPONSES] ??= []);
    if (responses.at(-1)?.getHeader('connection') === 'close') {
      socket.pause(); // nothing more is read
      return false;
    }
    while (responses[0]?.closed && responses.length > 1) responses.shift();
    if (responses.push(response) > MOST_WAITING) response.setHeader('Connection', 'close');
    return true;
  }

  /** For a server's `clientError`. */
  refuse(fault: Error, socket: Connection): void {
    if (socket[REFUSED]) return; // it goes on sending, and is being closed
    const latest = socket[RESPONSES]?.at(-1);
    const error = errorOf(fault);
    if (!error || !socket.writable || saysNothing(socket) || isHalfAnswered(latest)) {
      socket.destroy();
      return;
    }
    socket[REFUSED] = true;
    if (latest === undefined || latest.req.complete) this.#answerInTurn(socket, { error });
    else {
      this.options.voices.answer(error, latest.req, latest);
      swallowLateWrites(latest);
    }
  }

  /** For a server's `connect`: nothing is tunnelled here. */
  refuseTunnel(stream: Duplex): void {
    const socket = stream as Connection;
    takeOver(socket);
    if (socket[REFUSED]) return;
    socket[REFUSED] = true;
    this.#answerInTurn(socket, TUNNEL);
  }

  /** What came before on the connection is answered first. */
  #answerInTurn(socket: Connection, refusal: Refusal): void {
    const latest = socket[RESPONSES]?.at(-1);
    if (latest === undefined || latest.closed) this.#answer(socket, refusal);
    else latest.once('close', () => this.#answer(socket, refusal));
  }

  #answer(socket: Connection, { error, method, headers: special = [] }: Refusal): void {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    const { headersOf, limitsOf, linger, logger, onRawAnswer } = this.options;
    const interactionId = newUuid();
    const headers = [
      ...headersOf({ path: NO_PATH, encrypted: isEncrypted({ socket }) }),
      ...limitsOf(peerAddressOf(socket)),
      [INTERACTION_ID, interactionId] as const,
      ...special,
    ];
    socket.write(rawAnswer(error, headers));
    closeLingeringly(socket, linger);
    logger.info({ context: 'http', interactionId }, `unreadable ${error.status}`);
    onRawAnswer(error.status, method);
  }
}

const TUNNEL: Refusal = {
  error: new DomainError('method_not_allowed', 'The method CONNECT is not supported.'),
  method: 'CONNECT',
  // What to use instead (RFC 9110 §15.5.6).
  headers: [['Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS']],
};

/**
 * Node lets go of a connection at CONNECT: from then on nobody hears when it fails, which would end the process, nor ends
 * the responses that still wait for their turn.
 */
function takeOver(socket: Connection): void {
  socket.on('error', () => undefined); // its close follows
  socket.once('close', () => socket[RESPONSES]?.forEach((response) => response.destroy()));
}

/** Whether nothing ever came: browsers open connections ahead, and would show the answer to a question never asked. */
function saysNothing(socket: Socket): boolean {
  return socket.bytesRead === 0;
}

/** Whether an answer has begun, or ended, although its request never came whole: there is nothing more to say. */
function isHalfAnswered(latest: ServerResponse | undefined): boolean {
  return latest !== undefined && latest.headersSent && !latest.req.complete;
}

/** What is told of a fault; nothing where the connection itself is what failed, or its handshake. */
function errorOf(fault: Error): DomainError | undefined {
  const code = 'code' in fault ? String(fault.code) : '';
  const known = FAULTS[code];
  if (known) return new DomainError(...known);
  if (!code.startsWith('HPE_')) return undefined;
  return new DomainError('invalid_request', 'The request cannot be read.');
}
