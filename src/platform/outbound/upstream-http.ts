import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { endsWithin } from '#platform/clock/ends-within.js';
import { Agent, request } from './undici.js';

const MAX_RESPONSE_BYTES = 1024 * 1024;
/** The milliseconds for which the close waits for the requests that are under way. */
const CLOSE_WITHIN = 2_000;
const WITHOUT_BODY = new Set([204, 205, 304]);

/** The methods other than GET that can be sent. Any other method is sent as GET. */
const METHODS: ReadonlySet<string> = new Set(['POST', 'DELETE']);

/** A request to a configured URL. It is sent as GET unless the method is POST or DELETE. */
export interface UpstreamRequest {
  readonly method?: string | undefined;
  readonly headers?: Record<string, string>;
  readonly body?: string | null | undefined;
  readonly signal?: AbortSignal | null | undefined;
}

/** A request in the shape that openid-client gives to its `fetch`. */
interface LibraryRequest extends Omit<UpstreamRequest, 'body'> {
  readonly body?: ConstructorParameters<typeof Response>[0];
  /** It is ignored, because {@link UpstreamHttp} follows no redirect in any case. */
  readonly redirect?: string;
}

/** The members of a response that this service reads. A global `Response` has them as well. */
export interface UpstreamAnswer extends Pick<Response, 'status' | 'ok' | 'text' | 'json'> {
  readonly headers: Pick<Headers, 'get' | 'has'>;
}

/**
 * Sends HTTP requests to URLs that the operator configured: those of identity providers and of
 * GitHub. It trusts the certificate authorities of Node.js and of SVC_EXTRA_CA_CERTS, and reads at
 * most 1 MiB. Unlike `fetch`, it follows no redirect and decompresses nothing, so that the limit
 * also bounds the memory.
 */
export class UpstreamHttp {
  readonly #agent: Agent;

  /**
   * @param extraCaCerts PEM certificates of additional authorities
   * @param answerTimeout the seconds that an upstream server may take for a response
   */
  constructor(
    extraCaCerts: readonly string[],
    readonly answerTimeout = 10,
  ) {
    this.#agent = new Agent({
      connect: { secureContext: trustOf(extraCaCerts) },
      allowH2: false, // HTTP/2 gains nothing for a few requests
      maxResponseSize: MAX_RESPONSE_BYTES,
    });
  }

  /**
   * Sends a request and reads the response. It rejects with the errors of undici; {@link
   * fetchFault} describes them. The response is no global `Response`, because the first use of that
   * class loads a second undici, the one in Node.js, which takes 3 MiB.
   */
  readonly fetch = async (url: string, asked: UpstreamRequest): Promise<UpstreamAnswer> => {
    const { status, headers, bytes } = await this.#send(url, asked);
    const text = () => new TextDecoder().decode(bytes);
    return {
      status,
      ok: status >= 200 && status < 300,
      headers: {
        get: (name) => joined(headers[name.toLowerCase()]),
        has: (name) => headers[name.toLowerCase()] !== undefined,
      },
      text: async () => text(),
      json: async () => JSON.parse(text()) as unknown,
    };
  };

  /** Sends a request for openid-client, in place of the global `fetch`. */
  readonly fetchForLibrary = async (
    url: string,
    { body, ...asked }: LibraryRequest,
  ): Promise<Response> => {
    const text = await new Response(body ?? null).text();
    const { status, headers, bytes } = await this.#send(url, { ...asked, body: text });
    return new Response(WITHOUT_BODY.has(status) ? null : bytes, {
      status,
      headers: Object.entries(headers).flatMap(([name, value = []]) =>
        [value].flat().map((one): [string, string] => [name, one]),
      ),
    });
  };

  async #send(url: string, { method = 'GET', headers = {}, body, signal }: UpstreamRequest) {
    const answer = await request(url, {
      method: METHODS.has(method) ? method : 'GET',
      headers,
      body: body || null,
      signal: signal ?? AbortSignal.timeout(this.answerTimeout * 1000),
      dispatcher: this.#agent,
    });
    const bytes = await answer.body.arrayBuffer();
    return { status: answer.statusCode, headers: answer.headers, bytes };
  }

  /** Closes the connections, after the requests that are under way have ended, or two seconds. */
  async close(): Promise<void> {
    if (!(await endsWithin(this.#agent.close(), CLOSE_WITHIN))) await this.#agent.destroy();
  }
}

/** Returns the value of a header as `Headers` does; null if the response lacks the header. */
const joined = (value: string | string[] | undefined) =>
  value === undefined ? null : [value].flat().join(', ');

/**
 * The TLS contexts of this process, by the PEM text of their additional certificate authorities.
 * Each context is made once, because parsing the certificates takes 20 ms.
 */
const trusts = new Map<string, SecureContext>();

function trustOf(extraCaCerts: readonly string[]): SecureContext {
  const key = extraCaCerts.join('\n');
  const known = trusts.get(key);
  if (known) return known;
  const made = createSecureContext({ ca: [...getCACertificates('default'), ...extraCaCerts] });
  trusts.set(key, made);
  return made;
}

/** Describes a failed request for the operator. The text does not contain the configured URL. */
export function fetchFault(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  if (error.name === 'TimeoutError') return 'it did not answer in time';
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined || typeof code !== 'string') return error.message;
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return 'its answer is too large';
  return /CERT|ISSUER|SIGNATURE/.test(code) ? `${code} (see SVC_EXTRA_CA_CERTS)` : code;
}
