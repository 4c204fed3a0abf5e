import { once } from 'node:events';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../free-port.js';

/** The IP address and the port from which a client connected to the relay. */
export interface RelayClient {
  readonly address: string;
  readonly port: number;
}

/**
 * A TCP relay on loopback. A test can change its target, and can hold back the bytes from the
 * target. It takes the place of HAProxy in front of a database, and of the network between two
 * databases.
 */
export class TcpRelay {
  readonly #open = new Set<Socket>();
  /** The socket to the target for each socket of a client. */
  readonly #pairs = new Map<Socket, Socket>();
  /**
   * The bytes that are held back, each with the socket of the client. Undefined if the relay holds
   * nothing back.
   */
  #held: { readonly to: Socket; readonly bytes: Buffer }[] | undefined;
  /**
   * Returns the port to which the connection of a client leads; undefined if it must end at once.
   */
  #targetOf: (client: RelayClient) => number | undefined = () => undefined;
  /** Returns true if the connection of a client is cut off; undefined if none is. */
  #isCutOff: ((client: RelayClient) => boolean) | undefined;

  private constructor(
    readonly port: number,
    private readonly server: Server,
  ) {}

  /** Starts a relay at a free port. Without a target it ends each connection at once. */
  static async start(): Promise<TcpRelay> {
    const port = await freePort();
    const server = createServer();
    const relay = new TcpRelay(port, server);
    server.on('connection', (socket) => relay.#relay(socket));
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return relay;
  }

  /** The number of bytes that are held back. */
  get heldBytes(): number {
    return (this.#held ?? []).reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  /**
   * Ends every connection. New connections lead to this port, or end at once if it is undefined.
   */
  point(target: number | undefined): void {
    this.pointBy(() => target);
  }

  /**
   * Ends every connection. `targetOf` chooses the target port of each new connection by its client.
   */
  pointBy(targetOf: (client: RelayClient) => number | undefined): void {
    this.#targetOf = targetOf;
    this.cut();
  }

  /** Ends every connection. The bytes that are held back are lost. */
  cut(): void {
    if (this.#held) this.#held = [];
    for (const socket of this.#open) socket.destroy();
  }

  /** Holds back all bytes that the target sends from now on. Bytes to the target pass. */
  hold(): void {
    this.#held ??= [];
  }

  /** Sends the bytes that were held back, and holds back no more. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const { to, bytes } of held) to.write(bytes);
  }

  /**
   * Simulates a network that drops every packet. It forwards no bytes in either direction, and ends
   * no connection. New connections open, but get no bytes.
   *
   * @param isCutOff returns true for a client that is cut off; by default every client is
   */
  partition(isCutOff: (client: RelayClient) => boolean = () => true): void {
    this.#isCutOff = isCutOff;
    for (const [socket, onward] of this.#pairs) this.#pauseIfCutOff(socket, onward);
  }

  /** Ends the {@link partition}. Bytes that were sent in the meantime are forwarded first. */
  heal(): void {
    this.#isCutOff = undefined;
    for (const socket of this.#open) socket.resume();
  }

  async close(): Promise<void> {
    const closed = once(this.server.close(), 'close');
    this.cut();
    await closed;
  }

  #relay(socket: Socket): void {
    const target = this.#targetOf(clientOf(socket));
    if (target === undefined) {
      socket.on('error', () => undefined).destroy();
      return;
    }
    const onward = createConnection(target, '127.0.0.1');
    socket.on('data', (bytes) => onward.write(bytes));
    onward.on('data', (bytes) => {
      if (this.#held) this.#held.push({ to: socket, bytes });
      else socket.write(bytes);
    });
    this.#pairs.set(socket, onward);
    socket.on('close', () => this.#pairs.delete(socket));
    this.#pauseIfCutOff(socket, onward);
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      this.#open.add(one);
      one.setNoDelay(true);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        this.#open.delete(one);
        other.destroy();
      });
    }
  }

  #pauseIfCutOff(socket: Socket, onward: Socket): void {
    if (this.#isCutOff?.(clientOf(socket)) !== true) return;
    socket.pause();
    onward.pause();
  }
}

const clientOf = ({ remoteAddress = '', remotePort = 0 }: Socket): RelayClient => ({
  address: remoteAddress,
  port: remotePort,
});
