import { isIP, type LookupFunction } from 'node:net';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { Agent, request } from 'undici';
import { CONFIG, type Config } from '#platform/config/config.js';
import { isLoopbackHost } from '#platform/text/loopback.js';
import { isGlobalAddress, isLoopbackAddress } from './global-address.js';
import { resolveAddresses } from './resolve-addresses.js';

/** A request to an address that a client chose. */
export interface OutboundRequest {
  readonly method?: string | undefined;
  readonly headers?: ConstructorParameters<typeof Headers>[0];
  readonly body?: ConstructorParameters<typeof Response>[0];
  readonly signal?: AbortSignal | null | undefined;
}

/** What tests may want otherwise. */
export interface OutboundOptions {
  /** The addresses of a name; those of the DNS unless told. */
  readonly resolve?: (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;
  /** Authorities trusted in place of those Node trusts, PEM. SVC_EXTRA_CA_CERTS are the operator's, and never count here. */
  readonly ca?: readonly string[];
}

/** The injection token of {@link OutboundOptions}. */
export const OUTBOUND_OPTIONS = Symbol('OutboundOptions');

/** That an address may not be fetched: told to nobody but the log, since what stands behind it is not theirs to learn. */
export class OutboundRefused extends Error {
  override readonly name = 'OutboundRefused';
}

/** That an address which may be fetched gave nothing that can be used. The cause is for the log alone, for the same reason. */
export class OutboundFailed extends Error {
  override readonly name = 'OutboundFailed';
}

/** In milliseconds, from the first look-up to the last byte. */
const DEADLINE = 2500;

/** In bytes, as they come: nothing is inflated. */
const MOST_BYTES = 64 * 1024;

/**
 * HTTP to addresses that clients choose (`jwks_uri`, `request_uri`): over https, to global addresses, to the very ones that
 * were checked, without redirects, and for so long and so much only.
 */
@Injectable()
export class OutboundHttp {
  readonly #mayLoopBack: boolean;
  readonly #resolve: NonNullable<OutboundOptions['resolve']>;
  readonly #ca: readonly string[] | undefined;

  constructor(
    @Inject(CONFIG) { http }: { readonly http: Pick<Config['http'], 'tls' | 'baseUrl'> },
    @Optional() @Inject(OUTBOUND_OPTIONS) options: OutboundOptions = {},
  ) {
    this.#mayLoopBack = http.tls === undefined && isLoopbackHost(new URL(http.baseUrl).hostname);
    this.#resolve = options.resolve ?? resolveAddresses;
    this.#ca = options.ca;
  }

  /**
   * Resolves an address's name and checks what it leads to, without connecting.
   *
   * @throws OutboundRefused, or OutboundFailed when nobody could say what it leads to
   */
  async assertAllowed(address: string): Promise<void> {
    await this.#check(address, AbortSignal.timeout(DEADLINE));
  }

  /**
   * Fetches; the answer's body is read already.
   *
   * @throws OutboundRefused, or OutboundFailed: no connection, a redirect, the deadline, too large an answer
   */
  async fetch(
    address: string,
    { method, headers, body, signal }: OutboundRequest = {},
  ): Promise<Response> {
    const deadline = AbortSignal.timeout(DEADLINE);
    const isOver = signal ? AbortSignal.any([signal, deadline]) : deadline;
    const { url, checked } = await this.#check(address, isOver);
    const agent = this.#agentTo(checked, isOver);
    try {
      const answer = await request(url, {
        method: method === 'POST' ? 'POST' : 'GET',
        headers: Object.fromEntries(new Headers(headers)),
        body: (await new Response(body ?? null).text()) || null,
        signal: isOver,
        dispatcher: agent,
      });
      const bytes = await answer.body.arrayBuffer();
      if (answer.statusCode >= 300 && answer.statusCode < 400) {
        throw new Error('a redirect is not followed');
      }
      return new Response(bytes.byteLength === 0 ? null : bytes, {
        status: answer.statusCode,
        headers: Object.entries(answer.headers).flatMap(([name, value = []]) =>
          [value].flat().map((one): [string, string] => [name, one]),
        ),
      });
    } catch (error) {
      const cause = isOver.aborted ? isOver.reason : error;
      throw new OutboundFailed('it gave no answer that can be used', { cause });
    } finally {
      await agent.destroy();
    }
  }

  /** An agent for one request, whose every connection leads to one of these addresses and ends with the signal. */
  #agentTo(checked: readonly string[], signal: AbortSignal): Agent {
    return new Agent({
      connect: {
        signal, // undici's own is not heard while a TLS handshake lasts
        lookup: pinnedLookup(checked),
        autoSelectFamily: true, // a host without IPv6 still reaches a name that has both
        rejectUnauthorized: true, // whatever NODE_TLS_REJECT_UNAUTHORIZED says
        ...(this.#ca ? { ca: [...this.#ca] } : {}),
      },
      allowH2: false,
      maxResponseSize: MOST_BYTES,
      pipelining: 0,
    });
  }

  async #check(
    address: string,
    signal: AbortSignal,
  ): Promise<{ url: URL; checked: readonly string[] }> {
    const url = URL.parse(address);
    if (!url || url.username !== '' || url.password !== '' || url.hash !== '') {
      throw new OutboundRefused('it is no address');
    }
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && this.#mayLoopBack)) {
      throw new OutboundRefused('it is not https');
    }
    const checked = await this.#addressesOf(url, signal);
    const isLoopback = checked.every(isLoopbackAddress);
    const isAllowed = isLoopback ? this.#mayLoopBack : checked.every(isGlobalAddress);
    if (checked.length === 0 || !isAllowed) {
      throw new OutboundRefused('it leads to an address that is not global');
    }
    if (url.protocol !== 'https:' && !isLoopback) throw new OutboundRefused('it is not https');
    return { url, checked };
  }

  async #addressesOf({ hostname }: URL, signal: AbortSignal): Promise<readonly string[]> {
    const host = hostname.replace(/^\[|\]$/g, '');
    if (isIP(host) !== 0) return [host];
    try {
      return await within(this.#resolve(host, signal), signal);
    } catch (cause) {
      throw new OutboundFailed('its name could not be looked up', { cause });
    }
  }
}

/** Whatever is asked for, the answer is what was checked: a name that answers twice is asked once. */
function pinnedLookup(checked: readonly string[]): LookupFunction {
  const answers = checked.map((address) => ({ address, family: isIP(address) }));
  return (_hostname, options, callback) => {
    const [first] = answers;
    if (options.all || !first) callback(null, answers);
    else callback(null, first.address, first.family);
  };
}

/** @throws the signal's reason when it comes first */
function within<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason as Error);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  return Promise.race([over, promise]).finally(() => signal.removeEventListener('abort', abort));
}
