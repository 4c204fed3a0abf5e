import { createSecureContext, getCACertificates } from 'node:tls';
import type { CustomFetch } from 'openid-client';
import { Agent, request } from 'undici';

const MAX_RESPONSE_BYTES = 1024 * 1024;
const WITHOUT_BODY = new Set([204, 205, 304]);

/**
 * HTTP to the identity providers the operator configured. It trusts the authorities Node trusts and those of
 * SVC_EXTRA_CA_CERTS, and reads 1 MiB at most. Unlike `fetch` it follows no redirect and inflates nothing, so that
 * the limit holds for what lands in memory too.
 */
export class UpstreamHttp {
  readonly #agent: Agent;

  /**
   * @param extraCaCerts PEM certificates
   * @param answerTimeout how long a provider may take for one answer, in seconds
   */
  constructor(
    extraCaCerts: readonly string[],
    readonly answerTimeout = 10,
  ) {
    const ca = [...getCACertificates('default'), ...extraCaCerts];
    this.#agent = new Agent({
      connect: { secureContext: createSecureContext({ ca }) }, // parsed once, not for each connection
      allowH2: false, // a few requests gain nothing from it
      maxResponseSize: MAX_RESPONSE_BYTES,
    });
  }

  /** Takes the place of `fetch` in openid-client; rejects with undici's errors. */
  readonly fetch: CustomFetch = async (url, { method, headers, body, signal }) => {
    const answer = await request(url, {
      method: method === 'POST' ? 'POST' : 'GET',
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

  /** Ends its connections. */
  close(): Promise<void> {
    return this.#agent.close();
  }
}
