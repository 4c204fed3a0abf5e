import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once, type EventEmitter } from 'node:events';
import { createServer } from 'node:net';

/**
 * The range of ports to search. It is below 32,768, above which systems assign ports to programs
 * automatically.
 */
const FIRST = 12_000;
const END = 32_000;

let next = randomInt(FIRST, END);

/**
 * Returns a port that is free at every address of the machine. The system does not assign it to
 * another program, and no other call in any process returns it while this process runs.
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

/**
 * Binds the UDP port with the same number, as a lock that other processes of the tests see. Returns
 * false if another process has it.
 */
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

/**
 * Resolves to false if the address and port of a socket are in use, and to true otherwise. An
 * address that this machine does not have, such as one of IPv6, counts as free.
 */
async function isBound(socket: EventEmitter): Promise<boolean> {
  try {
    await once(socket, 'listening');
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EADDRINUSE';
  }
}
