import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';

/**
 * The largest number of bytes that are read from a refused client and dropped. After that, the
 * service reads no more from the client.
 */
const MOST_DISCARDED = 1024 * 1024;

/**
 * Ends a connection whose client may still be sending (RFC 9112 §9.6). An immediate close would
 * reset the connection, and the client would lose the response. This function closes our side,
 * drops incoming bytes up to a limit, and cuts the connection after some time.
 *
 * @param ms the milliseconds that the client has to read the response and close its side
 * @param request the request that is still arriving; undefined if it could not be read
 */
export function closeLingeringly(socket: Socket, ms: number, request?: IncomingMessage): void {
  const timer = setTimeout(() => socket.destroy(), ms);
  socket.once('close', () => clearTimeout(timer));
  let rest = MOST_DISCARDED;
  socket.on('data', (chunk: Buffer) => {
    rest -= chunk.length;
    if (rest >= 0) return;
    request?.pause(); // comes first, because a flowing request keeps its connection flowing
    socket.pause();
  });
  request?.resume(); // drops the bytes, because no listener is left
  socket.end();
}

/**
 * Closes the connection of a request to which the service responds before the whole body has
 * arrived. At most 1 MiB of the rest of the body is read and dropped.
 *
 * @param ms the time until the connection is cut, in milliseconds
 */
export function unreadBodies(ms: number): EdgeStep {
  return (request, response, next) => {
    const { headers, socket } = request;
    if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) {
      next();
      return;
    }
    const writeHead = response.writeHead.bind(response) as (...head: unknown[]) => ServerResponse;
    const writeHeadAndClose = (...head: unknown[]) => {
      if (!request.complete) {
        response.setHeader('Connection', 'close');
        // Node calls `destroySoon` after the last response of a connection. This replacement leaves
        // the client time to read that response.
        const linger = () => closeLingeringly(socket, ms, request);
        socket.destroySoon = linger;
      }
      return writeHead(...head);
    };
    response.writeHead = writeHeadAndClose; // by its name: docs/performance/garbage.md
    next();
  };
}
