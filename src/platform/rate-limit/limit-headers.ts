import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientAddressResolver } from '#platform/http/request/client-address.js';
import type { HeaderLine } from '#platform/http/contract/kept-headers.js';
import type { Buckets } from './buckets/buckets.js';
import { hitOf } from './hit.js';
import type { TierName } from '#platform/http/routing/route-policy.js';
import { TIERS } from './buckets/tiers.js';

const LIMIT = 'x-ratelimit-limit';
const REMAINING = 'x-ratelimit-remaining';

/** The tier that limited a request, and the number of further requests that are allowed now. */
interface StatedLimit {
  readonly tier: TierName;
  readonly remaining: number;
}

const STATED = Symbol('limit of the route');
type Limited = ServerResponse & { [STATED]?: StatedLimit };

/** Records the limit that was applied to a request, for the headers of its response. */
export function noteLimit(response: ServerResponse, limit: StatedLimit): void {
  (response as Limited)[STATED] = limit;
}

/**
 * Sets the headers about the rate limit on every response. If no limit was applied, they show the
 * client's bucket in the General tier, as this process knows it. Nothing is counted for that, and
 * no statement is sent.
 */
export class LimitHeaders {
  constructor(
    private readonly buckets: Buckets,
    private readonly addressOf: ClientAddressResolver,
  ) {}

  /**
   * Sets the headers right before the head of the response is written. A 429 states its wait, in
   * seconds, in both `retry-after` and `x-ratelimit-after`.
   */
  readonly set = (request: IncomingMessage, response: Limited, status: number): void => {
    const { tier, remaining } = response[STATED] ?? this.#general(this.addressOf(request));
    response.setHeader(LIMIT, String(TIERS[tier].burst));
    response.setHeader(REMAINING, String(remaining));
    if (status !== 429) return;
    const after = response.getHeader('retry-after') ?? '1';
    response.setHeader('retry-after', after);
    response.setHeader('x-ratelimit-after', after);
  };

  /**
   * Returns the headers of a response to bytes that are not a request.
   * @param address the IP address at the other end of the connection
   */
  lines(address: string | undefined): readonly HeaderLine[] {
    const { tier, remaining } = this.#general(address);
    return [
      [LIMIT, String(TIERS[tier].burst)],
      [REMAINING, String(remaining)],
    ];
  }

  #general(address: string | undefined): StatedLimit {
    const { remaining } = this.buckets.peek(hitOf('general', address));
    return { tier: 'general', remaining };
  }
}
