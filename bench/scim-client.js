import { createConnection } from 'node:net';

/**
 * A client with one keep-alive connection, as an identity provider has. It writes the bytes of its
 * requests itself and only counts the bytes of the answers. So it needs little CPU time of the
 * machine on which the server runs.
 */
export class ScimClient {
  #socket;
  #url;
  #token;
  #chunks = [];
  #waiting;

  constructor(baseUrl, token) {
    this.#url = new URL(baseUrl);
    this.#token = token;
    this.#connect();
  }

  /**
   * Sends a request from a client IP address that no other request has. Resolves when the whole
   * answer has arrived.
   * @param body text or bytes of JSON
   */
  send(method, path, body = '') {
    if (this.#socket.destroyed) this.#connect(); // the server closes connections that are idle
    const { pathname, host } = this.#url;
    const length = Buffer.byteLength(body);
    const head =
      `${method} ${pathname.replace(/\/$/, '')}${path} HTTP/1.1\r\nhost: ${host}\r\nx-forwarded-for: ${newAddress()}\r\n` +
      `authorization: Bearer ${this.#token}\r\naccept: application/scim+json\r\n` +
      (length === 0
        ? '\r\n'
        : `content-type: application/scim+json\r\ncontent-length: ${length}\r\n\r\n`);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.cork();
      this.#socket.write(head, 'latin1');
      if (length > 0) this.#socket.write(body);
      this.#socket.uncork();
    });
  }

  /**
   * Sends a request, and throws if the answer has another status.
   * Resolves with the text of the body.
   */
  async expect(status, ...request) {
    const answer = await this.send(...request);
    if (answer.status !== status) {
      throw new Error(`${request[0]} ${request[1]}: ${answer.status} ${answer.body}`);
    }
    return answer.body;
  }

  close() {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #connect() {
    const { hostname, port } = this.#url;
    const socket = createConnection({ host: hostname, port: Number(port), noDelay: true });
    const fail = (error) => this.#waiting?.reject(error ?? new Error('the connection was closed'));
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('error', fail).on('close', () => fail());
    this.#socket = socket;
  }

  #receive(chunk) {
    this.#chunks.push(chunk);
    const answer = wholeAnswer(this.#chunks);
    if (!answer) return;
    this.#chunks = [];
    const { resolve } = this.#waiting;
    this.#waiting = undefined;
    resolve(answer);
  }
}

const END_OF_HEAD = '\r\n\r\n';
const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n');

/**
 * Returns the answer once all of it has arrived; undefined before. A body in chunked encoding is
 * not decoded.
 */
function wholeAnswer(chunks) {
  const [first] = chunks;
  const end = first.indexOf(END_OF_HEAD);
  if (end < 0) return merged(chunks);
  const head = first.toString('latin1', 0, end);
  const status = Number(head.slice(9, 12));
  const received = chunks.reduce((sum, chunk) => sum + chunk.length, 0) - end - END_OF_HEAD.length;
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  const isWhole =
    status === 204 || status === 304
      ? true
      : length === undefined
        ? tailOf(chunks).equals(LAST_CHUNK)
        : received >= Number(length);
  if (!isWhole) return undefined;
  return {
    status,
    bytes: received,
    get body() {
      return Buffer.concat(chunks)
        .subarray(end + END_OF_HEAD.length)
        .toString();
    },
  };
}

/**
 * Joins the pieces of an answer if the end of its head is not in the first piece. Returns the
 * answer if it is whole; undefined otherwise.
 */
function merged(chunks) {
  if (chunks.length === 1) return undefined;
  const whole = Buffer.concat(chunks);
  chunks.splice(0, chunks.length, whole);
  return whole.includes(END_OF_HEAD) ? wholeAnswer(chunks) : undefined;
}

function tailOf(chunks) {
  const last = chunks.at(-1);
  const tail = last.length < LAST_CHUNK.length ? Buffer.concat(chunks.slice(-8)) : last;
  return tail.subarray(-LAST_CHUNK.length);
}

let addresses = 0;

/**
 * Returns a new client IP address for each request. The rate limits count the requests of each
 * address and are never switched off, so that a reused address could be refused.
 */
function newAddress() {
  const number = (addresses += 1);
  return `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`;
}
