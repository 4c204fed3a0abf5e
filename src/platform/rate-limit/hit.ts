import { hash } from 'node:crypto';
import { NO_CREDENTIAL, type Hit } from './buckets/buckets.js';
import { normalizeIp } from './buckets/throttler.js';
import { TIERS, type TierName } from './buckets/tiers.js';

/**
 * Returns the hit of a client's request, by its address. An IPv6 client is its /64, which one subscriber has. Clients whose
 * connection and address are gone share one bucket.
 *
 * @param holder returns the hash of the request's credential
 */
export function hitOf(
  tier: TierName,
  address: string | undefined,
  holder: () => string = () => NO_CREDENTIAL,
): Hit {
  const client = address === undefined ? 'unknown' : normalizeIp(address);
  return { bucket: `${tier} ${client}`, tier, rate: TIERS[tier], holder };
}

/** Returns the holder of bookings for a credential: its hash. All requests without a credential have one holder. */
export function holderOf(credential: string | undefined): string {
  return credential === undefined ? NO_CREDENTIAL : hash('sha256', credential, 'base64url');
}
