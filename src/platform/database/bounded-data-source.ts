import { Socket } from 'node:net';
import { endsWithin } from '#platform/clock/ends-within.js';
import { DataSource } from '#platform/database/statements/typeorm.js';

/**
 * The milliseconds for which the end of a pool waits for the server. A server that answers closes a
 * connection within milliseconds.
 */
const CLOSE_WITHIN = 5_000;

/**
 * A data source whose end does not depend on the server. The pool of pg waits without a time limit
 * for a server that does not answer. It also leaves the socket to the server open, which keeps the
 * process running.
 */
export class BoundedDataSource extends DataSource {
  readonly #open = new Set<Socket>();
  #isCut = false;

  /** Makes the socket of a new connection. It is the option `stream` of pg. */
  readonly makeSocket = (): Socket => {
    if (this.#isCut) return new RefusedSocket();
    const socket = new Socket();
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  };

  /**
   * Cuts off every connection, without waiting for the server. Statements that wait for an answer
   * fail, and so do later connections.
   */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#open) socket.destroy();
  }

  /**
   * Closes the pool, and resolves when the server has closed every connection. Connections that are
   * still open after the time limit are cut off.
   *
   * @param limit the longest wait in milliseconds
   */
  override async destroy(limit = CLOSE_WITHIN): Promise<void> {
    try {
      await endsWithin(this.#end(), limit);
    } finally {
      this.cut();
    }
  }

  async #end(): Promise<void> {
    await super.destroy();
    await Promise.all([...this.#open].map(closed));
  }
}

/** A socket that never connects: its connection fails at once. */
class RefusedSocket extends Socket {
  override connect(): this {
    setImmediate(() => this.destroy());
    return this;
  }
}

function closed(socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.once('close', () => resolve());
  return promise;
}
