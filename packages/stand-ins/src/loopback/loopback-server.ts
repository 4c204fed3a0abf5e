import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:net';

/**
 * Makes a server listen on 127.0.0.1 only.
 *
 * @param port 0 for a free port
 * @returns the port; rejects with the system's error if the port is taken
 */
export async function listenOnLoopback(server: Server, port = 0): Promise<number> {
  server.listen({ port, host: '127.0.0.1' });
  await once(server, 'listening');
  const bound = server.address();
  if (typeof bound !== 'object' || bound === null) throw new Error('not a TCP server');
  return bound.port;
}

/** Stops a server and all its connections. A server that does not listen is not changed. */
export async function stopServer(server: Server & { closeAllConnections(): void }): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

/**
 * Checks that a port of loopback is free.
 *
 * @param wanted 0 for any port
 * @returns the port, free at this moment
 * @throws Error with one line for the user, if the port is taken or not permitted
 */
export async function freePort(wanted: number): Promise<number> {
  const probe = createServer();
  try {
    return await listenOnLoopback(probe, wanted);
  } catch (cause) {
    throw new Error(
      `Port ${wanted} cannot be listened on (${codeOf(cause)}): choose another with --port`,
      {
        cause,
      },
    );
  } finally {
    await stopServer(probe);
  }
}

/**
 * Returns the code of an error of the system, such as EADDRINUSE; `unknown` for any other error.
 */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
