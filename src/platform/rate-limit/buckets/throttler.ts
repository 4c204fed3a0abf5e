import type { ThrottlerStorage } from '@nestjs/throttler';
import type { Decision, Rate } from '#platform/gcra/gcra.js';

/**
 * This file alone imports `@nestjs/throttler`. The service uses its module (options and storage),
 * its guard as the base class of TierGuard, and its normalization of IP addresses. The library
 * would count a request in every tier, with fixed windows. The service limits a request only in the
 * tier of its route, by GCRA; so TierGuard overrides `canActivate`, and Buckets decide.
 */
export {
  InjectThrottlerOptions,
  InjectThrottlerStorage,
  normalizeIp,
  ThrottlerGuard,
  ThrottlerModule,
  type ThrottlerModuleOptions,
  ThrottlerStorage,
} from '@nestjs/throttler';

/** The result that a storage returns to `@nestjs/throttler`: times in whole seconds, rounded up. */
export type HitRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/** Converts a decision to the result that `@nestjs/throttler` reads. */
export function hitRecord({ allowed, remaining, retryAfter }: Decision, rate: Rate): HitRecord {
  const totalHits = rate.burst - remaining;
  return {
    totalHits,
    timeToExpire: Math.ceil((totalHits * rate.interval) / 1000),
    isBlocked: !allowed,
    timeToBlockExpire: Math.ceil(retryAfter / 1000),
  };
}
