import { Agent, request } from 'node:http';

/**
 * A client with one keep-alive connection, as a browser or a program has. It keeps cookies, and
 * each request comes from another client IP address.
 */
export class HttpClient {
  #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  #cookies = new Map();

  constructor(baseUrl, cookies = {}) {
    this.baseUrl = baseUrl;
    for (const [name, value] of Object.entries(cookies)) this.#cookies.set(name, value);
  }

  /** The value of the request header `Cookie`. */
  get cookie() {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  /**
   * Sends a GET with the cookies, and keeps the cookies of the answer, as a browser does. It does
   * not follow redirects.
   */
  async open(path, headers = {}) {
    const answer = await this.#send('GET', path, { ...headers, cookie: this.cookie });
    for (const line of answer.headers['set-cookie'] ?? []) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      if (value === '') this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
    return answer;
  }

  /** Sends a form by POST without cookies, as a program does. */
  post(path, fields, headers = {}) {
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    return this.#send(
      'POST',
      path,
      { ...type, ...headers },
      new URLSearchParams(fields).toString(),
    );
  }

  postJson(path, value, headers = {}) {
    const type = { 'content-type': 'application/json' };
    return this.#send('POST', path, { ...type, ...headers }, JSON.stringify(value));
  }

  close() {
    this.#agent.destroy();
  }

  #send(method, path, headers, body = '') {
    return new Promise((resolve, reject) => {
      const options = {
        agent: this.#agent,
        method,
        headers: {
          ...headers,
          'x-forwarded-for': newAddress(),
          ...(method === 'GET' ? {} : { 'content-length': Buffer.byteLength(body) }),
        },
      };
      const sent = request(new URL(path, this.baseUrl), options, (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const { statusCode: status, headers: answered } = response;
          resolve({ status, headers: answered, body: Buffer.concat(chunks).toString() });
        });
      });
      sent.on('error', reject);
      sent.end(body);
    });
  }
}

let addresses = 0;

/**
 * Returns a client IP address that no request has used yet. The rate limits count the requests of
 * each address and are never switched off, so that a reused address could be refused. RawClient
 * uses a different range of addresses.
 */
function newAddress() {
  const number = (addresses += 1);
  return `10.${1 + ((number >> 16) % 99)}.${(number >> 8) & 255}.${number & 255}`;
}
