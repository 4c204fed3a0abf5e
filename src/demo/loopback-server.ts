import { once } from 'node:events';
import type { Server } from 'node:net';

/**
 * Listens on one loopback address and nowhere else.
 *
 * @param port 0 for a free one
 * @returns the port; rejects with the system's error when it is taken
 */
export async function listenOnLoopback(
  server: Server,
  port = 0,
  address: '127.0.0.1' | '::1' = '127.0.0.1',
): Promise<number> {
  server.listen({ port, host: address });
  await once(server, 'listening');
  const bound = server.address();
  if (typeof bound !== 'object' || bound === null) throw new Error('not a TCP server');
  return bound.port;
}

/** Stops a server, its idle and its hanging connections too; a stopped one stays stopped. */
export async function stopServer(server: Server & { closeAllConnections(): void }): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
