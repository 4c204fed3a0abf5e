import { LAPSE_INTERVALS } from '#platform/gcra/bookings.js';
import type { TierName } from '#platform/http/routing/route-policy.js';
import { longestDebt, type Rate } from '#platform/gcra/gcra.js';

/**
 * Each route has one of these rate limits: `burst` requests at once, then one every `interval`
 * milliseconds. Each client has one bucket in each of them.
 */
export const TIERS = {
  authentication: { burst: 8, interval: 2000 },
  issuance: { burst: 15, interval: 2000 },
  general: { burst: 20, interval: 1000 },
} as const satisfies Record<TierName, Rate>;

/**
 * Milliseconds after which the bucket of any tier is as good as new, and has no bookings: none is
 * for later than its debt.
 */
export const LONGEST_STATE = Math.max(
  ...Object.values(TIERS).map((rate) => longestDebt(rate) + LAPSE_INTERVALS * rate.interval),
);
