import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { endsWithin } from '#platform/clock/ends-within.js';
import { Agent, request } from './undici.js';

const MAX_RESPONSE_BYTES = 1024 * 1024;
/** The milliseconds for which the close waits for the requests that are under way. */
const CLOSE_WITHIN = 2_000;
const WITHOUT_BODY = new Set([204, 205, 304]);

/** The methods other than GET that can be sent. Any other method is sent as GET. */
const METHODS: ReadonlySet<string> = new Set(['POST', 'DELETE']);

/** A request to a configured URL, in the shape that openid-client gives to its `fetch`. */
export interface UpstreamRequest {
  readonly method?: string | undefined;
  readonly headers?: Record<string, string>;
  readonly body?: ConstructorParameters<typeof Response>[0];
  readonly signal?: AbortSignal | null | undefined;
  /**
   * A member that openid-client sets in its requests. {@link UpstreamHttp} ignores it, because it
   * follows no redirect in any case.
   */
  readonly redirect?: string;
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
   * Sends a request for openid-client, in place of the global `fetch`. It rejects with the errors
   * of undici; {@link fetchFault} describes them.
   */
  readonly fetch = async (
    url: string,
    { method = 'GET', headers = {}, body, signal }: UpstreamRequest,
  ): Promise<Response> => {
    const answer = await request(url, {
      method: METHODS.has(method) ? method : 'GET',
      headers,
      body: (await new Response(body ?? null).text()) || null,
      signal: signal ?? AbortSignal.timeout(this.answerTimeout * 1000),
      dispatcher: this.#agent,
    });
    const bytes = await answer.body.arrayBuffer();
    return new Response(WITHOUT_BODY.has(answer.statusCode) ? null : bytes, {
      status: answer.statusCode,
      headers: Object.entries(answer.headers).flatMap(([name, value = []]) =>
        [value].flat().map((one): [string, string] => [name, one]),
      ),
    });
  };

  /** Closes the connections, after the requests that are under way have ended, or two seconds. */
  async close(): Promise<void> {
    if (!(await endsWithin(this.#agent.close(), CLOSE_WITHIN))) await this.#agent.destroy();
  }
}

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
