import { isIPv6 } from 'node:net';
import { normalizeIp } from './buckets/throttler.js';
import { NO_CREDENTIAL, type Buckets, type Hit } from './buckets/buckets.js';
import type { Rate } from '#platform/gcra/gcra.js';
import { TIERS } from './buckets/tiers.js';

/**
 * The length in bits of the prefix of a site. A site is the IPv6 network of one customer, a /48,
 * with 65,536 client networks of /64 (RFC 6177 §2).
 */
const SITE_PREFIX = 48;

/** The limit of a site is as large as the limits of this many single clients together. */
const FACTOR = 64;

/**
 * The rate at which a site, which is an IPv6 /48, may send requests that fail, and requests that
 * insert anonymous rows.
 */
export const SITE_RATE: Rate = {
  burst: FACTOR * TIERS.authentication.burst,
  interval: TIERS.authentication.interval / FACTOR,
};

/**
 * The outcomes that are counted for a site (an IPv6 /48), each in a bucket of its own. They are
 * failed attempts, and rows that requests without a user or an authenticated client insert.
 */
export type SiteCount = 'failures' | 'rows';

/**
 * Limits for each IPv6 /48 how many requests may have one kind of outcome, such as a failed
 * attempt. A request is counted when its outcome is known, and only if the outcome is of that kind.
 * Until then, this process counts it as if it had that outcome, so that many concurrent requests
 * cannot exceed the limit.
 */
export class Networks {
  readonly #underWay = new Map<string, number>();

  constructor(
    private readonly buckets: Buckets,
    private readonly counted: SiteCount,
  ) {}

  /**
   * Returns the milliseconds until the /48 network of an IPv6 address may send a further limited
   * request; 0 if it may send one now. For IPv4 the result is always 0, because the limit of the
   * single address is enough.
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
   * Counts a request provisionally, until its outcome is known.
   * @returns a function to be called once with the outcome: true counts the request for good
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

/** Returns the bucket and rate of an IPv6 address's /48 network for one kind of outcomes. */
export function siteOf(address: string, counted: SiteCount): Hit {
  return {
    bucket: `${counted} ${normalizeIp(address, SITE_PREFIX)}`,
    tier: counted,
    rate: SITE_RATE,
    holder: () => NO_CREDENTIAL,
  };
}
