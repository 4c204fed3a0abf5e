import { setTimeout as delay } from 'node:timers/promises';
import { parseSetCookie, stringifyCookie } from 'cookie';
import { z } from 'zod';

/** An answer that is no redirect, its body read, and where it came from. */
export interface Answer {
  readonly url: URL;
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

interface Cookie {
  readonly value: string;
  /** In milliseconds; infinite for a cookie that ends with the browser. */
  readonly expires: number;
}

/** How many redirects in a row are a circle, and how often a 429 is waited out. */
const MOST_REDIRECTS = 15;
const MOST_WAITS = 3;

const JSON_TYPE = 'application/json';
const FORM = 'application/x-www-form-urlencoded';

/** A person at a browser, as far as HTTP goes: keeps cookies, follows redirects, waits when told to. */
export class Walker {
  readonly #cookies = new Map<string, Map<string, Cookie>>();

  /** @param address where they say they come from: the demo trusts this machine as a proxy, and limits are by address */
  constructor(
    readonly baseUrl: string,
    private readonly address?: string,
  ) {}

  /** Asks for an address of ours and goes wherever it leads. */
  async go(path: string): Promise<Answer> {
    let url = new URL(path, this.baseUrl);
    for (let hops = 0; hops < MOST_REDIRECTS; hops += 1) {
      const answer = await this.#send('GET', url);
      const location = answer.headers.get('location');
      if (location === null) return answer;
      url = new URL(location, url);
    }
    throw new Error(`${path} leads in a circle`);
  }

  /** Goes wherever an address of ours leads, until it leads to somebody else's: returns that one, unasked. */
  async goUntil(path: string, elsewhere: string): Promise<URL | Answer> {
    let url = new URL(path, this.baseUrl);
    for (let hops = 0; hops < MOST_REDIRECTS; hops += 1) {
      const answer = await this.#send('GET', url);
      const location = answer.headers.get('location');
      if (location === null) return answer;
      url = new URL(location, url);
      if (url.href.startsWith(elsewhere)) return url;
    }
    throw new Error(`${path} leads in a circle`);
  }

  /** Sends a form, as OAuth clients do (RFC 6749 §3.2), and reads the answer, which must be a success of this shape. */
  async sendForm<Schema extends z.ZodType>(
    path: string,
    fields: Readonly<Record<string, string>>,
    schema: Schema,
  ) {
    const form = new URLSearchParams(fields).toString();
    return read(await this.#send('POST', new URL(path, this.baseUrl), form, FORM), schema);
  }

  /** Reads JSON with an access token in the header. */
  async getWith<Schema extends z.ZodType>(token: string, path: string, schema: Schema) {
    return read(await this.sendWith(token, 'GET', path), schema);
  }

  /** Sends a request with a token in the header, and JSON where there is a body. */
  sendWith(token: string, method: string, path: string, body?: object): Promise<Answer> {
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

  /** Reads a file. */
  async download(path: string): Promise<Uint8Array> {
    const response = await fetch(new URL(path, this.baseUrl), { headers: this.#from() });
    if (response.status !== 200) throw new Error(`${path} answered ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  }

  /** Sends JSON, or nothing, as one of our own pages would; a redirect is not followed. */
  post(path: string, body?: object): Promise<Answer> {
    return this.#send('POST', new URL(path, this.baseUrl), body && JSON.stringify(body));
  }

  /** Sends JSON and reads the answer, which must be a success of this shape. */
  async postFor<Schema extends z.ZodType>(path: string, body: object, schema: Schema) {
    return read(await this.post(path, body), schema);
  }

  /** When the session ends, as its cookie says. */
  sessionExpires(): Date {
    return new Date(this.#jar(new URL(this.baseUrl)).get('svc_session')?.expires ?? 0);
  }

  async #send(
    method: string,
    url: URL,
    body?: string,
    type = JSON_TYPE,
    extra: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    for (let waits = 0; ; waits += 1) {
      const response = await fetch(url, {
        method,
        headers: this.#headers(method, url, body === undefined ? undefined : type, extra),
        body: body ?? null,
        redirect: 'manual', // by hand, to see every cookie
      });
      this.#keepCookies(url, response);
      const text = await response.text();
      if (response.status !== 429 || waits === MOST_WAITS) {
        return { url, status: response.status, headers: response.headers, body: text };
      }
      await delay(Number(response.headers.get('retry-after') ?? 1) * 1000);
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
      const expires = maxAge === undefined ? Infinity : Date.now() + maxAge * 1000;
      if (value && expires > Date.now()) jar.set(name, { value, expires });
      else jar.delete(name);
    }
  }
}

/**
 * The JSON of a successful answer.
 *
 * @throws Error with what the service said instead
 */
export function read<Schema extends z.ZodType>(answer: Answer, schema: Schema): z.output<Schema> {
  if (answer.status !== 200 && answer.status !== 201) throw unexpected(answer);
  return schema.parse(JSON.parse(answer.body));
}

const PROBLEM = z.object({ detail: z.string() });

/** An answer that was not the one hoped for, with what it says of the reason (RFC 9457, or the page of an error). */
export function unexpected({ url, status, headers, body }: Answer): Error {
  const isJson = headers.get('content-type')?.includes('json') === true;
  const detail = isJson
    ? PROBLEM.safeParse(JSON.parse(body)).data?.detail
    : /<p class="lead">([^<]*)</.exec(body)?.[1];
  return new Error(`${url.origin}${url.pathname} answered ${status}${detail ? `: ${detail}` : ''}`);
}
