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
  readonly makeSocket = (): Socket => new TrackedSocket(this.#open, () => this.#isCut);

  /**
   * Begins to watch the connections that are open now. Returns a function that returns true if one
   * of them has received anything since.
   */
  watchReceipts(): () => boolean {
    const before = [...this.#open].map((socket) => ({ socket, bytes: socket.bytesRead }));
    return () => before.some(({ socket, bytes }) => socket.bytesRead > bytes);
  }

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

/**
 * A socket that is in the set of open sockets from its attempt to connect until it is closed. A
 * client that finds no host for its connection never connects its socket, which then never closes.
 */
class TrackedSocket extends Socket {
  /** @param isRefused returns true if the connection must fail at once */
  constructor(
    private readonly open: Set<Socket>,
    private readonly isRefused: () => boolean,
  ) {
    super();
  }

  override connect(...where: unknown[]): this {
    if (this.isRefused()) {
      // A socket that was destroyed before it connected does not close again by itself.
      setImmediate(() => (this.destroyed ? this.emit('close', false) : this.destroy()));
      return this;
    }
    this.open.add(this);
    this.once('close', () => this.open.delete(this));
    return super.connect(...(where as [string]));
  }
}

function closed(socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.once('close', () => resolve());
  return promise;
}
