import { LAPSE_INTERVALS } from '#platform/gcra/bookings.js';
import type { TierName } from '#platform/http/routing/route-policy.js';
import { longestDebt, type Rate } from '#platform/gcra/gcra.js';

/**
 * The rate of each tier: `burst` requests at once, then one every `interval` milliseconds. A route
 * belongs to one tier, which the `@Route` of its handler or controller names. Each client has one
 * bucket for each tier. Failed attempts of an IPv6 /48 have a limit of their own, in `networks.ts`.
 */
export const TIERS = {
  authentication: { burst: 8, interval: 2000 },
  issuance: { burst: 15, interval: 2000 },
  general: { burst: 20, interval: 1000 },
} as const satisfies Record<TierName, Rate>;

/**
 * The milliseconds after which an unused bucket of any tier has neither a debt nor a booking, so
 * that it can be dropped.
 */
export const LONGEST_STATE = Math.max(
  ...Object.values(TIERS).map((rate) => longestDebt(rate) + LAPSE_INTERVALS * rate.interval),
);
