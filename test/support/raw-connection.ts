import { connect, type Socket } from 'node:net';
import { newAddress } from './client.js';
import { parseAnswer, type RawAnswer } from './raw-http.js';

/** A connection on which a test sends arbitrary bytes, at any speed. */
export class RawConnection {
  readonly socket: Socket;
  #received = '';
  #waiting: (() => void)[] = [];

  /** @param socket an open connection, for example over TLS; by default a new TCP connection */
  constructor(baseUrl: string, socket?: Socket) {
    const { port } = new URL(baseUrl);
    this.socket = socket ?? connect({ host: 'localhost', port: Number(port) });
    const wake = () => this.#waiting.splice(0).forEach((resolve) => resolve());
    this.socket.setEncoding('latin1').on('data', (text: string) => {
      this.#received += text;
      wake();
    });
    // A reset also emits `close`, which is handled below. Without a listener, the error would end
    // this process.
    this.socket.on('error', () => undefined);
    this.socket.on('close', wake).on('drain', wake);
  }

  /** All bytes received so far, as Latin-1 text. */
  get received(): string {
    return this.#received;
  }

  /** Resolves when the received bytes contain a text. Rejects if the connection ends before. */
  async receives(text: string): Promise<void> {
    while (!this.#received.includes(text)) {
      if (this.socket.closed) throw new Error(`the connection ended with: ${this.#received}`);
      await this.#somethingNew();
    }
  }

  #somethingNew(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Waits until the server has closed the connection, and returns the first response on it. */
  async farewell(): Promise<RawAnswer> {
    while (!this.socket.closed) await this.#somethingNew();
    return parseAnswer(this.#received);
  }

  /**
   * Sends chunks of an HTTP body without waiting for a response, as fast as the socket accepts
   * them. It stops when the connection has sent `most` bytes in all, or when the server ends it.
   *
   * @returns the number of bytes sent
   */
  async pour(most: number): Promise<number> {
    const { socket } = this;
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    while (socket.writable && socket.bytesWritten < most) {
      socket.write(chunk);
      while (socket.writableNeedDrain && !socket.closed) await this.#somethingNew();
    }
    return socket.bytesWritten - socket.writableLength;
  }
}

/**
 * Returns the head of an HTTP request, from an unused client IP address. It leaves the connection
 * open for more requests.
 */
export function headOf(baseUrl: string, line: string, headers: readonly string[] = []): string {
  const host = new URL(baseUrl).host;
  return [
    `${line} HTTP/1.1`,
    `Host: ${host}`,
    `X-Forwarded-For: ${newAddress()}`,
    ...headers,
    '',
    '',
  ].join('\r\n');
}
