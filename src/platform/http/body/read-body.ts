import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * The outcome of reading a body: its bytes, `too-large`, or `cut-off` if the connection or the
 * response ended first.
 */
export type ReadBody = Buffer | 'too-large' | 'cut-off';

/** The size in bytes of the first buffer for a body, which grows as needed. */
const FIRST_ROOM = 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Reads a body into one buffer, up to the limit. A list of its chunks would take hundreds of bytes
 * for each chunk, even for one of a single byte. Once the response ends, reading stops and the
 * bytes read so far are dropped.
 *
 * @param limit the largest size of the body, in bytes
 */
export function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  limit: number,
): Promise<ReadBody> {
  return new Promise((resolve) => {
    let held: Buffer = NOTHING;
    let length = 0;

    const settle = (outcome: ReadBody) => {
      held = NOTHING;
      request.off('data', take).off('end', finish);
      response.off('close', cutOff);
      if (!Buffer.isBuffer(outcome)) request.pause();
      resolve(outcome);
    };
    const take = (chunk: Buffer) => {
      const needed = length + chunk.length;
      if (needed > limit) {
        settle('too-large');
        return;
      }
      if (needed > held.length) {
        const room = Math.max(needed, 2 * length, FIRST_ROOM);
        held = Buffer.concat([held], Math.min(room, limit));
      }
      chunk.copy(held, length);
      length = needed;
    };
    const finish = () => settle(held.subarray(0, length));
    const cutOff = () => settle('cut-off');

    // The response closes early if the client has disconnected, or if the deadline has already sent
    // a response. The request's event `error` has no listener, because it says nothing more than
    // `close`. After such a listener was removed, an error would end the process.
    response.once('close', cutOff);
    request.on('data', take).once('end', finish);
    if (response.closed) cutOff();
  });
}
