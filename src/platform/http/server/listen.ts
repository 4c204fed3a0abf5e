import { once } from 'node:events';
import { createServer, type ListenOptions, type Server } from 'node:net';

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
 * The option by which every worker binds the same port for itself (SO_REUSEPORT). On Linux the
 * kernel then spreads the connections evenly over the workers.
 *
 * Other systems do not use the option: the primary process accepts the connections, and passes them
 * on (node:cluster). If a worker is killed in the moment in which it gets a connection, the primary
 * process never closes this connection, and nothing answers it.
 */
export const SHARED_PORT: ListenOptions = process.platform === 'linux' ? { reusePort: true } : {};

/**
 * Checks that no process listens on a port. Without this check two services of one user could share
 * their ports.
 *
 * @throws CannotListen if a process listens on the port, or the port cannot be bound
 */
export async function requireFree(where: ListenOptions, what: string): Promise<void> {
  const probe = createServer();
  await listen(probe, { ...where, exclusive: true }, what);
  probe.close();
  await once(probe, 'close');
}

/**
 * Binds the port of a server.
 *
 * @param what the name of the port in the error: a variable, or a number
 * @throws CannotListen if the port is in use, or the system refuses it
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
