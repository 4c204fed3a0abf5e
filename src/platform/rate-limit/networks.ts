import { isIPv6 } from 'node:net';
import { normalizeIp } from './buckets/throttler.js';
import { NO_CREDENTIAL, type Buckets, type Hit } from './buckets/buckets.js';
import type { Rate } from '#platform/gcra/gcra.js';
import { TIERS } from './buckets/tiers.js';

/** A site has an IPv6 /48, which is 65,536 client networks (RFC 6177 §2). */
const SITE_PREFIX = 48;

/** A site may fail as often as so many single clients. */
const FACTOR = 64;

/** The rate of failed requests of a site, and that of its anonymous rows. */
export const SITE_RATE: Rate = {
  burst: FACTOR * TIERS.authentication.burst,
  interval: TIERS.authentication.interval / FACTOR,
};

/**
 * The outcomes that count for a site, each in a bucket of its own: failed attempts, and rows of
 * requests without a caller.
 */
export type SiteCount = 'failures' | 'rows';

/**
 * Counts one kind of outcomes of each IPv6 /48 in a bucket. A request is counted when its outcome
 * is known; another outcome costs nothing. Requests under way reserve a place in this process, so
 * that of many at once no more are counted than the bucket allows.
 */
export class Networks {
  readonly #underWay = new Map<string, number>();

  constructor(
    private readonly buckets: Buckets,
    private readonly counted: SiteCount,
  ) {}

  /** Returns the milliseconds until the network of an address may try again; always 0 for IPv4. */
  wait(address: string): number {
    if (!isIPv6(address)) return 0;
    const hit = siteOf(address, this.counted);
    const { remaining, retryAfter } = this.buckets.peek(hit);
    const underWay = this.#underWay.get(hit.bucket) ?? 0;
    if (underWay < remaining) return 0;
    return retryAfter + (underWay + 1 - Math.max(1, remaining)) * SITE_RATE.interval;
  }

  /** Reserves the place of a request. @returns a function for its outcome, to be called once */
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

/** Returns the hit of an outcome, in the bucket of the address's site. */
export function siteOf(address: string, counted: SiteCount): Hit {
  return {
    bucket: `${counted} ${normalizeIp(address, SITE_PREFIX)}`,
    tier: counted,
    rate: SITE_RATE,
    holder: () => NO_CREDENTIAL,
  };
}
