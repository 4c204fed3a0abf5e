import { isIP, type LookupFunction } from 'node:net';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { CONFIG, type Config } from '#platform/config/config.js';
import { isLoopbackHost } from '#platform/text/loopback.js';
import { isGlobalAddress, isLoopbackAddress } from './global-address.js';
import { resolveAddresses } from './resolve-addresses.js';
import { Agent, request } from './undici.js';

/**
 * The default time in milliseconds for a whole fetch, from the look-up of the host name to the last
 * byte.
 */
const DEADLINE = 2500;

/** A request to a URL that a client chose. */
export interface OutboundRequest {
  readonly method?: string | undefined;
  readonly headers?: ConstructorParameters<typeof Headers>[0];
  readonly body?: ConstructorParameters<typeof Response>[0];
  readonly signal?: AbortSignal | null | undefined;
  /** The milliseconds for the whole fetch; by default {@link DEADLINE}. */
  readonly within?: number;
}

/** Options that only tests set. */
export interface OutboundOptions {
  /** Resolves a host name to its IP addresses; the default asks the DNS. */
  readonly resolve?: (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;
  /**
   * The trusted certificate authorities (PEM) in place of those of Node. Authorities of
   * SVC_EXTRA_CA_CERTS are not trusted for URLs that clients choose.
   */
  readonly ca?: readonly string[];
}

/** The injection token of {@link OutboundOptions}. */
export const OUTBOUND_OPTIONS = Symbol('OutboundOptions');

/**
 * The error for a URL that must not be fetched. The reason is only in the log, so that a client
 * learns nothing about internal networks.
 */
export class OutboundRefused extends Error {
  override readonly name = 'OutboundRefused';
}

/**
 * The error for an allowed URL that gave no usable response. The cause is only in the log, so that
 * a client learns nothing about internal networks.
 */
export class OutboundFailed extends Error {
  override readonly name = 'OutboundFailed';

  constructor(
    message: string,
    /** The step of the fetch that failed. */
    readonly reason: 'name' | 'connection' | 'tls' | 'redirect' | 'size' | 'time',
    options: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * The largest number of bytes of a response. Compressed responses are not decompressed, so that the
 * limit also bounds the memory.
 */
const MOST_BYTES = 64 * 1024;

/**
 * Fetches URLs that clients choose (`jwks_uri`, `request_uri`, `backchannel_logout_uri`), which
 * must not lead into internal networks. It fetches only over https, only from public IP addresses,
 * and connects to exactly the addresses that were checked. A service whose own base URL is on
 * loopback may also fetch from loopback, by http too. It follows no redirect, and limits time and
 * size.
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
   * Checks that a URL may be fetched. It resolves the host name, and does not connect.
   *
   * @throws OutboundRefused if the URL may not be fetched, or OutboundFailed if the name could not
   *   be resolved within 2.5 s
   */
  async assertAllowed(address: string): Promise<void> {
    await this.#check(address, AbortSignal.timeout(DEADLINE));
  }

  /**
   * Fetches a URL and reads the body.
   *
   * @throws OutboundRefused if the URL may not be fetched; OutboundFailed if the look-up or the
   *   connection fails, for a redirect, after the deadline, and for a response of more than 64 KiB
   */
  async fetch(
    address: string,
    { method, headers, body, signal, within = DEADLINE }: OutboundRequest = {},
  ): Promise<Response> {
    const deadline = AbortSignal.timeout(within);
    const isOver = signal ? AbortSignal.any([signal, deadline]) : deadline;
    const { url, checked } = await this.#check(address, isOver);
    const agent = this.#agentTo(checked, isOver);
    try {
      const sent = Buffer.from(await new Response(body ?? null).arrayBuffer());
      const answer = await request(url, {
        method: method === 'POST' ? 'POST' : 'GET',
        headers: Object.fromEntries(new Headers(headers)),
        body: sent.byteLength === 0 ? null : sent,
        signal: isOver,
        dispatcher: agent,
      });
      const bytes = await answer.body.arrayBuffer();
      if (answer.statusCode >= 300 && answer.statusCode < 400) {
        throw new RedirectAnswered();
      }
      const { statusCode: status } = answer;
      return new Response(hasNoBody(status) || bytes.byteLength === 0 ? null : bytes, {
        status,
        headers: Object.entries(answer.headers).flatMap(([name, value = []]) =>
          [value].flat().map((one): [string, string] => [name, one]),
        ),
      });
    } catch (error) {
      const [cause, reason] = isOver.aborted
        ? [isOver.reason, 'time' as const]
        : [error, reasonOf(error)];
      throw new OutboundFailed('it gave no answer that can be used', reason, { cause });
    } finally {
      await agent.destroy();
    }
  }

  /**
   * Creates an agent for one request, which connects only to the checked IP addresses and ends with
   * the signal.
   */
  #agentTo(checked: readonly string[], signal: AbortSignal): Agent {
    return new Agent({
      connect: {
        signal, // undici ignores the signal of the request during a TLS handshake
        lookup: pinnedLookup(checked),
        autoSelectFamily: true, // tries IPv4 too if IPv6 does not work
        rejectUnauthorized: true, // also if NODE_TLS_REJECT_UNAUTHORIZED is 0
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
      throw new OutboundRefused('it is no URL');
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
      return await untilAborted(this.#resolve(host, signal), signal);
    } catch (cause) {
      const reason = signal.aborted ? 'time' : 'name';
      throw new OutboundFailed('its name could not be looked up', reason, { cause });
    }
  }
}

/**
 * Returns true for a status without a body. Some servers send a body with 205 against RFC 9110
 * §15.3.6. The constructor of `Response` throws if it gets a body with such a status.
 */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 205;
}

/** The error for a response with a status of 300 to 399, because redirects are not followed. */
class RedirectAnswered extends Error {
  constructor() {
    super('a redirect is not followed');
  }
}

/** Matches the codes of OpenSSL and Node for a refused certificate or a failed TLS handshake. */
const TLS_CODE =
  /^(?:ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(?:GET|VERIFY)_|HOSTNAME_MISMATCH$)/;

function reasonOf(error: unknown): OutboundFailed['reason'] {
  if (error instanceof RedirectAnswered) return 'redirect';
  const { code = '' } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return 'size';
  return TLS_CODE.test(code) ? 'tls' : 'connection';
}

/**
 * Makes a look-up function that returns the checked IP addresses for every name. So the connection
 * asks the DNS no second time: a second response could name an internal address (DNS rebinding).
 */
function pinnedLookup(checked: readonly string[]): LookupFunction {
  const answers = checked.map((address) => ({ address, family: isIP(address) }));
  return (_hostname, options, callback) => {
    const [first] = answers;
    if (options.all || !first) callback(null, answers);
    else callback(null, first.address, first.family);
  };
}

/**
 * Waits for a promise, or until a signal is aborted.
 * @throws the reason of the signal if it is aborted first
 */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason as Error);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  return Promise.race([over, promise]).finally(() => signal.removeEventListener('abort', abort));
}
