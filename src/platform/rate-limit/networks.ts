import { isIPv6 } from 'node:net';
import { normalizeIp } from './buckets/throttler.js';
import { NO_CREDENTIAL, type Buckets, type Hit } from './buckets/buckets.js';
import type { Rate } from '#platform/gcra/gcra.js';
import { TIERS } from './buckets/tiers.js';

/**
 * The length of the prefix of a site's IPv6 network, which contains 65,536 client networks (RFC
 * 6177 §2).
 */
const SITE_PREFIX = 48;

/** The number of single clients whose limits together are the limit of a site. */
const FACTOR = 64;

/** The rate of failed requests of a site, and that of its anonymous rows. */
export const SITE_RATE: Rate = {
  burst: FACTOR * TIERS.authentication.burst,
  interval: TIERS.authentication.interval / FACTOR,
};

/**
 * The outcomes of requests that are counted for a site, each in a bucket of its own: failed
 * attempts, and rows of requests without a user or an authenticated client.
 */
export type SiteCount = 'failures' | 'rows';

/**
 * Limits one kind of outcomes of the requests of each IPv6 /48. A request is counted when its
 * outcome is known, and only if the outcome is of that kind. A request under way reserves a place
 * in this process, so that many concurrent requests cannot exceed the limit.
 */
export class Networks {
  readonly #underWay = new Map<string, number>();

  constructor(
    private readonly buckets: Buckets,
    private readonly counted: SiteCount,
  ) {}

  /**
   * Returns the milliseconds until the network of an address may send such a request again; always
   * 0 for IPv4.
   */
  wait(address: string): number {
    if (!isIPv6(address)) return 0;
    const hit = siteOf(address, this.counted);
    const { remaining, retryAfter } = this.buckets.peek(hit);
    const underWay = this.#underWay.get(hit.bucket) ?? 0;
    if (underWay < remaining) return 0;
    return retryAfter + (underWay + 1 - Math.max(1, remaining)) * SITE_RATE.interval;
  }

  /**
   * Reserves a place for a request.
   * @returns a function to be called once with the outcome: true counts the request
   */
  begin(address: string): (counts: boolean) => void {
    if (!isIPv6(address)) return () => undefined;
    const hit = siteOf(address, this.counted);
    const { bucket } = hit;
    this.#underWay.set(bucket, (this.#underWay.get(bucket) ?? 0) + 1);
    return (counts) => {
      const others = (this.#underWay.get(bucket) ?? 1) - 1;
      if (others > 0) this.#underWay.set(bucket, others);
      else this.#underWay.delete(bucket);
      if (counts) this.buckets.charge(hit);
    };
  }
}

/** Returns the hit for one kind of outcomes, in the bucket of the address's /48. */
export function siteOf(address: string, counted: SiteCount): Hit {
  return {
    bucket: `${counted} ${normalizeIp(address, SITE_PREFIX)}`,
    tier: counted,
    rate: SITE_RATE,
    holder: () => NO_CREDENTIAL,
  };
}
