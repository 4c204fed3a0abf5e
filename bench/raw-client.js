import { createConnection } from 'node:net';

/**
 * The client's IP address in the bytes of a request. Each request overwrites its last three octets,
 * which always have three digits.
 */
const ADDRESS = '10.100.100.100';

/**
 * A client with one keep-alive connection that repeats a request, each time from another client IP
 * address. The bytes are made once and answers are not parsed. So the client takes little CPU time
 * from the server, which runs on the same machine.
 */
export class RawClient {
  static #addresses = 0;
  #socket;
  #request;
  #address;
  #received = '';
  #waiting;

  constructor(url, { method, headers = {}, body = '' }) {
    const { hostname, port, pathname, host } = new URL(url);
    const lines = Object.entries({
      host,
      'x-forwarded-for': ADDRESS,
      ...headers,
      ...(body === '' ? {} : { 'content-length': Buffer.byteLength(body) }),
    });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    this.#request = Buffer.from(`${method} ${pathname} HTTP/1.1\r\n${head}\r\n${body}`);
    this.#address = this.#request.indexOf(ADDRESS) + '10.'.length;
    this.#socket = createConnection({ host: hostname, port: Number(port), noDelay: true });
    this.#socket.setEncoding('latin1').on('data', (chunk) => this.#receive(chunk));
    this.#socket.on('error', (error) => this.#waiting?.reject(error));
  }

  /**
   * Sends the request. The promise resolves with the body of the answer. It rejects for any status
   * other than 200.
   */
  send() {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#changeAddress();
      this.#socket.write(Buffer.from(this.#request));
    });
  }

  close() {
    this.#socket.destroy();
  }

  /**
   * Changes the client IP address in the request. The rate limits count the requests of each
   * address and are never switched off, so that a reused address could be refused. An address is
   * used again only after a long time.
   */
  #changeAddress() {
    let number = (RawClient.#addresses += 1);
    for (let octet = 0; octet < 3; octet += 1) {
      const value = 100 + (number % 156); // three digits always
      number = Math.floor(number / 156);
      this.#request.write(String(value), this.#address + octet * 4, 'latin1');
    }
  }

  #receive(chunk) {
    this.#received += chunk;
    const end = this.#received.indexOf('\r\n\r\n');
    if (end < 0) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#received.slice(0, end))?.[1];
    if (this.#received.length < end + 4 + Number(length)) return;
    const status = this.#received.slice(9, 12);
    const body = this.#received.slice(end + 4);
    this.#received = '';
    if (status === '200') this.#waiting.resolve(body);
    else this.#waiting.reject(new Error(`status ${status}`));
  }
}
