import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { readBody } from '../../../src/platform/http/body/read-body.js';

const KIB = 1024;
const LIMIT = 256 * KIB;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Returns the number of bytes of memory in use. */
function inUse(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Starts to read the body of a request, which the test sends. */
function request() {
  const incoming = new IncomingMessage(new Socket());
  return { incoming, body: readBody(incoming, new ServerResponse(incoming), LIMIT) };
}

/** Sends pieces of one size. The event loop gets a turn after every 1,024 pieces and at the end. */
async function push(incoming: IncomingMessage, size: number, pieces: number): Promise<void> {
  for (let piece = 0; piece < pieces; piece += 1) {
    incoming.push(Buffer.alloc(size, piece % 251));
    if (piece % KIB === 0) await turn();
  }
  await turn();
}

describe('a body', () => {
  it('in pieces of one byte takes hardly more memory than its bytes', async () => {
    const { incoming, body } = request();
    const before = inUse();
    await push(incoming, 1, LIMIT);
    expect(inUse() - before).toBeLessThan(16 * LIMIT);
    incoming.push(null);
    expect(await body).toHaveLength(LIMIT);
  });

  it.each([1, 7, 1000, 1024, 1025, 65_536])(
    'in pieces of %i bytes is read unchanged',
    async (size) => {
      const { incoming, body } = request();
      const pieces = Math.floor(LIMIT / size);
      await push(incoming, size, pieces);
      incoming.push(null);
      const sent = Array.from({ length: pieces }, (_, piece) => Buffer.alloc(size, piece % 251));
      expect(Buffer.concat(sent).equals((await body) as Buffer)).toBe(true);
    },
  );

  it('of one piece that is larger than the limit is too large', async () => {
    const { incoming, body } = request();
    await push(incoming, LIMIT + 1, 1);
    expect(await body).toBe('too-large');
  });
});
