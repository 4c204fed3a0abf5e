import { gunzipSync } from 'node:zlib';
import { parseSetCookie, stringifyCookie } from 'cookie';
import { Agent, request } from '#platform/outbound/undici.js';
import type { SoftwareKey } from '@svc/stand-ins/software-key';

/** A response with its body. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body if it is JSON, else undefined. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read any response, right or wrong
  readonly json: any;
}

/**
 * The parts of a request that differ from the request that a browser sends from a page of the
 * service.
 */
export interface RequestOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The IP address of this request, in place of the client's own. A test with many requests needs
   * many addresses because of rate limits.
   */
  readonly address?: string;
}

/** The connections of all clients. A request by them costs a quarter of the CPU time of `fetch`. */
const connections = new Agent();

/**
 * Maps the public origin of a service, which has no DNS entry, to the origin at which it listens.
 */
const listeners = new Map<string, string>();

/**
 * Sends requests for a public origin to the origin at which its service listens, as a proxy would.
 * If `listener` is undefined, this stops.
 */
export function leadTo(origin: string, listener: string | undefined): void {
  if (listener === undefined) listeners.delete(origin);
  else listeners.set(origin, listener);
}

/** The headers that `fetch` adds to each request. Clients send them too. */
const OF_FETCH = {
  accept: '*/*',
  'accept-language': '*',
  'sec-fetch-mode': 'cors',
  'user-agent': 'node',
};

let addresses = 0;

/** Returns an unused IP address, so that no two clients of a test share a rate limit. */
export function newAddress(): string {
  addresses += 1;
  return `10.${addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`;
}

/**
 * A browser without pages. It keeps cookies by origin, and sends the service's `Origin` with
 * writes. It has an IP address of its own, so that no two clients of a test share a rate limit.
 */
export class Client {
  readonly #jars = new Map<string, Map<string, string>>();

  /**
   * @param address the IP address in X-Forwarded-For; by default an unused one
   * @param dispatcher other connections, if the shared ones cannot reach the server or do not trust
   * its certificate
   */
  constructor(
    readonly baseUrl: string,
    readonly address = newAddress(),
    private readonly dispatcher = connections,
  ) {}

  get(path: string, options: RequestOptions = {}): Promise<Answer> {
    return this.send('GET', path, options);
  }

  post(path: string, body?: unknown, options: RequestOptions = {}): Promise<Answer> {
    return this.send('POST', path, { ...options, body });
  }

  /** Sends one request to a path of the service or to an absolute URL, and follows no redirect. */
  async send(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const url = new URL(path, this.baseUrl);
    const headers = new Map<string, string>(Object.entries(OF_FETCH));
    headers.set('x-forwarded-for', options.address ?? this.address);
    const cookies = this.#jar(url);
    if (cookies.size > 0) headers.set('cookie', stringifyCookie(Object.fromEntries(cookies)));
    if (method !== 'GET' && method !== 'HEAD') headers.set('origin', this.baseUrl);
    let body: string | undefined;
    if (options.body !== undefined) {
      headers.set('content-type', 'application/json');
      body = typeof options.body === 'string' ? options.body : JSON.stringify(options.body);
    }
    for (const [name, value] of Object.entries(options.headers ?? {})) {
      if (value === '') headers.delete(name.toLowerCase());
      else headers.set(name.toLowerCase(), value);
    }
    if (body !== undefined && !headers.has('content-type'))
      headers.set('content-type', 'text/plain;charset=UTF-8'); // as `fetch` does
    const listener = listeners.get(url.origin);
    if (listener !== undefined) headers.set('host', url.host);
    const target = listener === undefined ? url : `${listener}${url.pathname}${url.search}`;
    const response = await request(target, {
      dispatcher: this.dispatcher,
      method,
      headers: Object.fromEntries(headers),
      ...(body === undefined ? {} : { body }),
    });
    const received = headersOf(response.headers);
    this.#keepCookies(url, received);
    const isCompressed = received.get('content-encoding') === 'gzip';
    const text = isCompressed
      ? gunzipSync(await response.body.bytes()).toString()
      : await response.body.text();
    const isJson = /\bjson/.test(received.get('content-type') ?? '');
    return {
      status: response.statusCode,
      headers: received,
      text,
      json: isJson && method !== 'HEAD' ? JSON.parse(text) : undefined,
    };
  }

  /**
   * Sends GET requests along redirects, also to other origins. Returns the first response that is
   * not a redirect.
   */
  async follow(path: string): Promise<Answer & { readonly url: URL }> {
    let url = new URL(path, this.baseUrl);
    for (let hops = 0; hops < 15; hops += 1) {
      const answer = await this.get(url.href);
      const location = answer.headers.get('location');
      if (answer.status < 300 || answer.status >= 400 || location === null)
        return { ...answer, url };
      url = new URL(location, url);
    }
    throw new Error('too many redirects');
  }

  /** Returns the value of a cookie that the service set; undefined if there is none. */
  cookie(name: string): string | undefined {
    return this.#jar(new URL(this.baseUrl)).get(name);
  }

  setCookie(name: string, value: string): void {
    this.#jar(new URL(this.baseUrl)).set(name, value);
  }

  /**
   * Returns another client with the same cookies and a new IP address. It acts as an attacker who
   * copied the browser's cookies to another machine.
   */
  copy(): Client {
    const other = new Client(this.baseUrl, newAddress(), this.dispatcher);
    for (const [origin, jar] of this.#jars) other.#jars.set(origin, new Map(jar));
    return other;
  }

  /** Signs the user with this e-mail address in at an identity provider of the tests. */
  signIn(
    email: string,
    redirectTo = '/',
    provider = 'demo',
  ): Promise<Answer & { readonly url: URL }> {
    const query = new URLSearchParams({
      provider,
      login_hint: email,
      redirect_to: redirectTo,
    });
    return this.follow(`/login?${query.toString()}`);
  }

  /** Enrolls a first key in the bootstrap session. */
  async enroll(key: SoftwareKey, name?: string): Promise<Answer> {
    const { state, publicKey } = (await this.post('/enroll/webauthn/start', {})).json;
    const credential = key.create(publicKey, this.baseUrl);
    return this.post('/enroll/webauthn/complete', { state, credential, name });
  }

  /**
   * Logs in, or steps up, with a key. A user who touches the key often needs another `address` for
   * each login, because of the rate limit.
   */
  async logIn(key: SoftwareKey, options: { readonly address?: string } = {}): Promise<Answer> {
    const started = await this.post('/login/webauthn/start', {}, options);
    if (started.status !== 200) return started;
    const { state, publicKey } = started.json;
    const credential = key.get(publicKey, this.baseUrl);
    return this.post('/login/webauthn/complete', { state, credential }, options);
  }

  #jar(url: URL): Map<string, string> {
    let jar = this.#jars.get(url.origin);
    if (!jar) this.#jars.set(url.origin, (jar = new Map()));
    return jar;
  }

  #keepCookies(url: URL, headers: Headers): void {
    const jar = this.#jar(url);
    for (const line of headers.getSetCookie()) {
      const { name, value, maxAge } = parseSetCookie(line);
      if (value === undefined || value === '' || maxAge === 0) jar.delete(name);
      else jar.set(name, value);
    }
  }
}

function headersOf(received: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(received)) {
    for (const value of [values].flat()) headers.append(name, value);
  }
  return headers;
}
