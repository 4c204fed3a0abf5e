import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';

/** How much a client that is refused may still send, in bytes; what is beyond stays in its own buffers. */
const MOST_DISCARDED = 1024 * 1024;

/**
 * Ends a connection whose client may still be sending (RFC 9112 §9.6). Closed at once, it would be reset, and the client
 * lose the answer on its way. So this side is closed, what comes is dropped, up to a bound, and after a while the
 * connection is cut.
 *
 * @param ms how long the client may take to read and close its side
 * @param request the one that is still coming, unless it is nothing that could be read
 */
export function closeLingeringly(socket: Socket, ms: number, request?: IncomingMessage): void {
  const timer = setTimeout(() => socket.destroy(), ms);
  socket.once('close', () => clearTimeout(timer));
  let rest = MOST_DISCARDED;
  socket.on('data', (chunk: Buffer) => {
    rest -= chunk.length;
    if (rest >= 0) return;
    request?.pause(); // first: one that flows lets its connection flow
    socket.pause();
  });
  request?.resume(); // to nowhere: nobody listens
  socket.end();
}

/**
 * Where a request is answered before its body has come whole, whoever refused it and whatever is left, the answer is the
 * last of its connection, which is closed lingeringly: nobody makes us swallow what we do not read.
 *
 * @param ms see {@link closeLingeringly}
 */
export function unreadBodies(ms: number): EdgeStep {
  return (request, response, next) => {
    const { headers, socket } = request;
    if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) {
      next();
      return;
    }
    const writeHead = response.writeHead.bind(response) as (...head: unknown[]) => ServerResponse;
    response.writeHead = (...head: unknown[]) => {
      if (!request.complete) {
        response.setHeader('Connection', 'close');
        // What Node calls when the last answer of a connection is out.
        socket.destroySoon = () => closeLingeringly(socket, ms, request);
      }
      return writeHead(...head);
    };
    next();
  };
}
