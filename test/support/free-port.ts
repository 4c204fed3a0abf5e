import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once, type EventEmitter } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that a system hands out by itself, to whoever connects or asks for any: those begin at 32,768. */
const FIRST = 12_000;
const END = 32_000;

let next = randomInt(FIRST, END);

/**
 * A port that nobody listens on at any address, and that nobody is given until it is listened on: the system does not hand it
 * out, and no process that calls this, of this run or of another, is told of one that was told before.
 */
export async function freePort(): Promise<number> {
  for (let tries = FIRST; tries < END; tries += 1) {
    const port = next;
    next = next + 1 < END ? next + 1 : FIRST;
    if ((await reserve(port)) && (await isFree(port, '127.0.0.1')) && (await isFree(port, '::')))
      return port;
  }
  throw new Error('no port is free');
}

/** Takes the UDP port of the number, as a sign to the others, for as long as this process lives; false where another has it. */
async function reserve(port: number): Promise<boolean> {
  const sign = createSocket('udp4').unref();
  sign.bind({ address: '127.0.0.1', port, exclusive: true });
  const isOurs = await isBound(sign);
  if (!isOurs) sign.close();
  return isOurs;
}

async function isFree(port: number, host: string): Promise<boolean> {
  const server = createServer().listen(port, host);
  const isOurs = await isBound(server);
  if (server.listening) await once(server.close(), 'close');
  return isOurs;
}

/** Whether nobody else has its port: a machine without the address at all has nobody there. */
async function isBound(socket: EventEmitter): Promise<boolean> {
  try {
    await once(socket, 'listening');
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EADDRINUSE';
  }
}
