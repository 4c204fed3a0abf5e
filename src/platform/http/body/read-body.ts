import type { IncomingMessage, ServerResponse } from 'node:http';

/** What became of a body: its bytes, `too-large`, or `cut-off` where its client or its answer was gone before its end. */
export type ReadBody = Buffer | 'too-large' | 'cut-off';

/** What is held of a body at first, in bytes. */
const FIRST_ROOM = 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Reads a body, and holds no more of it than the limit, in one piece: kept as they come, pieces of a byte would cost
 * hundreds each. Once the request is answered, by whoever else, the rest is none of our business, and what was read is
 * dropped.
 *
 * @param limit in bytes
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

    // The client is gone, or the deadline answered. The request's own errors say nothing more, and Node raises them only
    // where it saw a listener: one that is gone by then would have ended the process.
    response.once('close', cutOff);
    request.on('data', take).once('end', finish);
    if (response.closed) cutOff();
  });
}
