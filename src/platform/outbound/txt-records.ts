import { Resolver } from 'node:dns/promises';

/** Options that only tests set. */
export interface DnsOptions {
  /** Name servers as `address:port`; the default is those of the system. */
  readonly servers?: readonly string[];
  /** The milliseconds for all attempts at all servers. */
  readonly deadline?: number;
}

/** The injection token of {@link DnsOptions}. */
export const DNS_OPTIONS = Symbol('DnsOptions');

/** The error if the DNS gave no usable response. The name may still have records. */
export class DnsFault extends Error {
  override readonly name = 'DnsFault';
}

/**
 * The error codes for a name that does not exist or has no record of the type, which are valid
 * responses.
 */
const NO_RECORDS: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND']);

const DEADLINE = 5000;

/**
 * Looks up TXT records in the DNS. It follows aliases (CNAME), and asks again over TCP if a
 * response is truncated.
 */
export class TxtRecords {
  readonly #servers: readonly string[] | undefined;
  readonly #deadline: number;

  constructor({ servers, deadline = DEADLINE }: DnsOptions = {}) {
    this.#servers = servers;
    this.#deadline = deadline;
  }

  /**
   * Returns the text of every TXT record of a name. A record consists of pieces, which are joined
   * (RFC 7208 §3.3). The list is empty for a name without records.
   *
   * @param signal ends the look-up early
   * @throws DnsFault if the servers do not answer, fail or refuse
   */
  async lookUp(name: string, signal?: AbortSignal): Promise<string[]> {
    const deadline = AbortSignal.timeout(this.#deadline);
    const isOver = signal ? AbortSignal.any([signal, deadline]) : deadline;
    if (isOver.aborted) throw new DnsFault('the look-up was ended');
    const resolver = new Resolver({ timeout: 2000, tries: 2 });
    if (this.#servers) resolver.setServers(this.#servers);
    const cancel = () => resolver.cancel();
    isOver.addEventListener('abort', cancel, { once: true });
    try {
      const records = await resolver.resolveTxt(name);
      return records.map((pieces) => pieces.join(''));
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      if (NO_RECORDS.has(code)) return [];
      throw new DnsFault(`a look-up in the DNS failed: ${code ?? 'without a code'}`, { cause });
    } finally {
      isOver.removeEventListener('abort', cancel);
    }
  }
}
