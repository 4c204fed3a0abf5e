import { once } from 'node:events';
import type { ListenOptions, Server } from 'node:net';

/** The error if a port cannot be bound. Its message is one line for the operator. */
export class CannotListen extends Error {
  override readonly name = 'CannotListen';

  /** @param code the system's name of the reason, such as EADDRINUSE */
  constructor(
    what: string,
    readonly code: string,
    options: ErrorOptions,
  ) {
    super(`${what} cannot be listened on (${code})`, options);
  }
}

/**
 * Binds the port of a server.
 *
 * @param what the name of the port in the error: a variable, or a number
 * @throws CannotListen
 */
export async function listen(server: Server, where: ListenOptions, what: string): Promise<void> {
  try {
    server.listen(where);
    await once(server, 'listening');
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    throw new CannotListen(what, code, { cause });
  }
}
