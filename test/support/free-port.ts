import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once, type EventEmitter } from 'node:events';
import { createServer } from 'node:net';

/**
 * The range of the ports that are tried. It is below 32,768, because from there on Linux assigns
 * ports to programs automatically.
 */
const FIRST = 12_000;
const END = 32_000;

let next = randomInt(FIRST, END);

/**
 * Returns a port that is free at every IP address of the machine. The system does not assign it to
 * other programs. No other call, in any process of the tests, returns it while this process runs.
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
 * Binds the UDP port with the same number, which serves as a lock between processes of the tests.
 * Returns false if another process has bound it.
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
 * Resolves to false if the IP address and port of a socket are in use, else to true. An IP address
 * that the machine does not have, such as `::` without IPv6, counts as free.
 */
async function isBound(socket: EventEmitter): Promise<boolean> {
  try {
    await once(socket, 'listening');
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EADDRINUSE';
  }
}
