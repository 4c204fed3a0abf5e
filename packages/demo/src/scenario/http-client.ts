import { parseSetCookie, stringifyCookie } from 'cookie';
import { z } from 'zod';
import { systemClock } from '@svc/stand-ins/clock';

/** A response with its body, and the URL of the last request if there were redirects. */
export interface HttpResponse {
  readonly url: URL;
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

interface Cookie {
  readonly value: string;
  /**
   * The expiry of the cookie in milliseconds since 1970; infinite for a cookie that a browser keeps
   * until it is closed.
   */
  readonly expires: number;
}

/**
 * The largest number of redirects in a row. The next constant is the largest number of retries
 * after a response with status 429.
 */
const MOST_REDIRECTS = 15;
const MOST_RETRIES = 3;

const JSON_TYPE = 'application/json';
const FORM = 'application/x-www-form-urlencoded';

/**
 * An HTTP client that acts like a browser: it keeps cookies, follows redirects, and repeats a
 * request after a 429.
 */
export class HttpClient {
  readonly #cookies = new Map<string, Map<string, Cookie>>();

  /**
   * @param address the IP address of the client, which is sent in X-Forwarded-For, because the demo
   *   trusts this machine as a proxy. Each address has its own rate limits.
   */
  constructor(
    readonly baseUrl: string,
    private readonly address?: string,
  ) {}

  /**
   * Requests a path of the service and follows its redirects.
   *
   * @throws Error after 15 redirects
   */
  get(path: string): Promise<HttpResponse> {
    return this.#follow<never>(path, () => undefined);
  }

  /**
   * Follows redirects until one leads to a URL that begins with the target. Returns that URL
   * without requesting it, or the first response that is no redirect.
   * @throws Error after 15 redirects
   */
  getUntil(path: string, target: string): Promise<URL | HttpResponse> {
    return this.#follow(path, (url) => (url.href.startsWith(target) ? url : undefined));
  }

  /**
   * Follows redirects until `stop` returns a value for the URL of one. Returns that value, or the
   * first response that is no redirect.
   */
  async #follow<End>(
    path: string,
    stop: (url: URL) => End | undefined,
  ): Promise<HttpResponse | End> {
    let url = new URL(path, this.baseUrl);
    for (let hops = 0; hops < MOST_REDIRECTS; hops += 1) {
      const response = await this.#send('GET', url);
      const location = response.headers.get('location');
      if (location === null) return response;
      url = new URL(location, url);
      const end = stop(url);
      if (end !== undefined) return end;
    }
    throw new Error(`${path} leads in a circle`);
  }

  /**
   * Sends a form, as OAuth clients do (RFC 6749 §3.2), and reads the successful response as the
   * given schema.
   */
  async sendForm<Schema extends z.ZodType>(
    path: string,
    fields: Readonly<Record<string, string>>,
    schema: Schema,
  ) {
    const form = new URLSearchParams(fields).toString();
    return read(await this.#send('POST', new URL(path, this.baseUrl), form, FORM), schema);
  }

  /**
   * Gets JSON with an access token in the header `Authorization`, and reads it as the given schema.
   */
  async getWithToken<Schema extends z.ZodType>(token: string, path: string, schema: Schema) {
    return read(await this.sendWithToken(token, 'GET', path), schema);
  }

  /** Sends a request with a token in the header `Authorization`, and JSON if there is a body. */
  sendWithToken(token: string, method: string, path: string, body?: object): Promise<HttpResponse> {
    return this.#send(
      method,
      new URL(path, this.baseUrl),
      body && JSON.stringify(body),
      JSON_TYPE,
      {
        authorization: `Bearer ${token}`,
      },
    );
  }

  /** Downloads a file. The optional signal aborts the request. */
  async download(path: string, signal?: AbortSignal): Promise<Uint8Array> {
    const url = new URL(path, this.baseUrl);
    const response = await fetch(url, { headers: this.#from(), signal: signal ?? null });
    if (response.status !== 200) throw new Error(`${path} answered ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  }

  /** Sends JSON, or no body, as a page of the service does. It follows no redirect. */
  post(path: string, body?: object): Promise<HttpResponse> {
    return this.#send('POST', new URL(path, this.baseUrl), body && JSON.stringify(body));
  }

  /** Sends JSON, and reads the successful response as the given schema. */
  async postFor<Schema extends z.ZodType>(path: string, body: object, schema: Schema) {
    return read(await this.post(path, body), schema);
  }

  /** Returns the time at which the session cookie expires; the year 1970 if there is none. */
  sessionExpires(): Date {
    return new Date(this.#jar(new URL(this.baseUrl)).get('svc_session')?.expires ?? 0);
  }

  async #send(
    method: string,
    url: URL,
    body?: string,
    type = JSON_TYPE,
    extra: Readonly<Record<string, string>> = {},
  ): Promise<HttpResponse> {
    for (let retries = 0; ; retries += 1) {
      const response = await fetch(url, {
        method,
        headers: this.#headers(method, url, body === undefined ? undefined : type, extra),
        body: body ?? null,
        redirect: 'manual', // to see the cookies of every response
      });
      this.#keepCookies(url, response);
      const text = await response.text();
      if (response.status !== 429 || retries === MOST_RETRIES) {
        return { url, status: response.status, headers: response.headers, body: text };
      }
      await systemClock.sleep(Number(response.headers.get('retry-after') ?? 1) * 1000);
    }
  }

  #headers(
    method: string,
    url: URL,
    type: string | undefined,
    extra: Readonly<Record<string, string>>,
  ): Headers {
    const headers = new Headers({ ...this.#from(), ...extra });
    const cookies = [...this.#jar(url)].map(([name, { value }]) => [name, value]);
    if (cookies.length > 0 && !headers.has('authorization'))
      headers.set('cookie', stringifyCookie(Object.fromEntries(cookies)));
    if (method === 'POST') headers.set('origin', this.baseUrl);
    if (type !== undefined) headers.set('content-type', type);
    return headers;
  }

  #from(): Record<string, string> {
    return this.address === undefined ? {} : { 'x-forwarded-for': this.address };
  }

  #jar(url: URL): Map<string, Cookie> {
    const jar = this.#cookies.get(url.origin) ?? new Map<string, Cookie>();
    this.#cookies.set(url.origin, jar);
    return jar;
  }

  #keepCookies(url: URL, response: Response): void {
    const jar = this.#jar(url);
    for (const line of response.headers.getSetCookie()) {
      const { name, value, maxAge } = parseSetCookie(line);
      const expires = maxAge === undefined ? Infinity : systemClock.milliseconds() + maxAge * 1000;
      if (value && expires > systemClock.milliseconds()) jar.set(name, { value, expires });
      else jar.delete(name);
    }
  }
}

/**
 * Reads the JSON of a successful response.
 *
 * @throws Error with the status and reason of any other response
 */
export function read<Schema extends z.ZodType>(
  response: HttpResponse,
  schema: Schema,
): z.output<Schema> {
  if (response.status !== 200 && response.status !== 201) throw unexpected(response);
  return schema.parse(JSON.parse(response.body));
}

const PROBLEM = z.object({ detail: z.string() });

/**
 * Returns the error for an unexpected response, with the reason that its problem document (RFC
 * 9457) or error page states.
 */
export function unexpected({ url, status, headers, body }: HttpResponse): Error {
  const isJson = headers.get('content-type')?.includes('json') === true;
  const detail = isJson
    ? PROBLEM.safeParse(JSON.parse(body)).data?.detail
    : /<p class="lead">([^<]*)</.exec(body)?.[1];
  return new Error(`${url.origin}${url.pathname} answered ${status}${detail ? `: ${detail}` : ''}`);
}
