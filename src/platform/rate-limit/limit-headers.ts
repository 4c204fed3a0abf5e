import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientAddressResolver } from '#platform/http/request/client-address.js';
import type { HeaderLine } from '#platform/http/contract/response-headers.js';
import type { Buckets } from '#platform/rate-limit/buckets/buckets.js';
import { hitOf } from './client-bucket.js';
import { TIERS, type TierName } from '#platform/rate-limit/buckets/tiers.js';

const LIMIT = 'x-ratelimit-limit';
const REMAINING = 'x-ratelimit-remaining';

/** The limit that a route was held to, and what it leaves. */
interface StatedLimit {
  readonly tier: TierName;
  readonly remaining: number;
}

const STATED = Symbol('limit of the route');
type Limited = ServerResponse & { [STATED]?: StatedLimit };

/** Notes the limit that a request was held to. */
export function noteLimit(response: ServerResponse, limit: StatedLimit): void {
  (response as Limited)[STATED] = limit;
}

/**
 * The headers about limits on every response. One that was held to no limit states the General tier's bucket, as far as this
 * process knows it: nothing is taken from it, and the database is not asked.
 */
export class LimitHeaders {
  constructor(
    private readonly buckets: Buckets,
    private readonly addressOf: ClientAddressResolver,
  ) {}

  /** Sets them when the head is written. A 429 has both names of its wait, wherever it comes from. */
  readonly set = (request: IncomingMessage, response: Limited, status: number): void => {
    const { tier, remaining } = response[STATED] ?? this.#general(this.addressOf(request));
    response.setHeader(LIMIT, String(TIERS[tier].burst));
    response.setHeader(REMAINING, String(remaining));
    if (status !== 429) return;
    const after = response.getHeader('retry-after') ?? '1';
    response.setHeader('retry-after', after);
    response.setHeader('x-ratelimit-after', after);
  };

  /** The headers of an answer to what never became a request. @param address of the connection */
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
