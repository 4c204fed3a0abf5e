import { createConnection } from 'node:net';

/**
 * One keep-alive connection that sends the same request over and over. The bytes are made once and answers are only
 * measured, so that the load takes as little as it can of the machine it shares with what is measured.
 */
export class RawClient {
  #socket;
  #request;
  #received = '';
  #waiting;

  constructor(url, { method, headers = {}, body = '' }) {
    const { hostname, port, pathname, host } = new URL(url);
    const lines = Object.entries({ host, ...headers, 'content-length': Buffer.byteLength(body) });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    this.#request = Buffer.from(`${method} ${pathname} HTTP/1.1\r\n${head}\r\n${body}`);
    this.#socket = createConnection({ host: hostname, port: Number(port), noDelay: true });
    this.#socket.setEncoding('latin1').on('data', (chunk) => this.#receive(chunk));
    this.#socket.on('error', (error) => this.#waiting?.reject(error));
  }

  /** Sends the request; resolves when its whole answer is there, and rejects unless that is a 200. */
  send() {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(this.#request);
    });
  }

  close() {
    this.#socket.destroy();
  }

  #receive(chunk) {
    this.#received += chunk;
    const end = this.#received.indexOf('\r\n\r\n');
    if (end < 0) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#received.slice(0, end))?.[1];
    if (this.#received.length < end + 4 + Number(length)) return;
    const status = this.#received.slice(9, 12);
    this.#received = '';
    if (status === '200') this.#waiting.resolve();
    else this.#waiting.reject(new Error(`status ${status}`));
  }
}
