import { normalizeIp } from '@nestjs/throttler';
import { NO_CREDENTIAL, type Hit } from '#platform/rate-limit/buckets/buckets.js';
import { TIERS, type TierName } from '#platform/rate-limit/buckets/tiers.js';

/**
 * A request of a client, by its address: one of IPv6 is its /64, since that is what a single subscriber has. Clients whose
 * address is gone with their connection share one bucket.
 *
 * @param holder tells the credential that came along
 */
export function hitOf(
  tier: TierName,
  address: string | undefined,
  holder: () => string = () => NO_CREDENTIAL,
): Hit {
  const client = address === undefined ? 'unknown' : normalizeIp(address);
  return { bucket: `${tier} ${client}`, tier, rate: TIERS[tier], holder };
}
