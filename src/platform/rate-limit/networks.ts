import { isIPv6 } from 'node:net';
import { normalizeIp } from '@nestjs/throttler';
import { NO_CREDENTIAL, type Buckets, type Hit } from '#platform/rate-limit/buckets/buckets.js';
import type { Rate } from '#platform/gcra/gcra.js';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';

/** A site has an IPv6 /48, which is 65,536 client networks (RFC 6177 §2). */
const SITE_PREFIX = 48;

/** How many clients of a site may fail as often as each may ask. */
const FACTOR = 64;

/** How often the requests of a site may fail. */
export const SITE_RATE: Rate = {
  burst: FACTOR * TIERS.authentication.burst,
  interval: TIERS.authentication.interval / FACTOR,
};

/**
 * The failed attempts of each IPv6 /48, in a bucket of their own. An attempt is counted when it has failed, so that those
 * that succeed cost nothing. Attempts that are under way reserve their place in this process: of many at once no more can
 * fail than the bucket holds.
 */
export class Networks {
  readonly #underWay = new Map<string, number>();

  constructor(private readonly buckets: Buckets) {}

  /** Milliseconds until the network of an address may try again; 0 at once, and always for IPv4. */
  wait(address: string): number {
    if (!isIPv6(address)) return 0;
    const hit = siteOf(address);
    const { remaining, retryAfter } = this.buckets.peek(hit);
    const underWay = this.#underWay.get(hit.bucket) ?? 0;
    if (underWay < remaining) return 0;
    return retryAfter + (underWay + 1 - Math.max(1, remaining)) * SITE_RATE.interval;
  }

  /** Reserves the place of an attempt. @returns takes its outcome, once */
  begin(address: string): (hasFailed: boolean) => void {
    if (!isIPv6(address)) return () => undefined;
    const hit = siteOf(address);
    const { bucket } = hit;
    this.#underWay.set(bucket, (this.#underWay.get(bucket) ?? 0) + 1);
    return (hasFailed) => {
      const others = (this.#underWay.get(bucket) ?? 1) - 1;
      if (others > 0) this.#underWay.set(bucket, others);
      else this.#underWay.delete(bucket);
      if (hasFailed) this.buckets.charge(hit);
    };
  }
}

/** An attempt of an address, in the bucket of its site. */
export function siteOf(address: string): Hit {
  return {
    bucket: `failures ${normalizeIp(address, SITE_PREFIX)}`,
    tier: 'failures',
    rate: SITE_RATE,
    holder: () => NO_CREDENTIAL,
  };
}
