import type { ThrottlerStorage } from '@nestjs/throttler';
import type { Rate, Verdict } from './gcra.js';

/** What `@nestjs/throttler` hears of a request: times in whole seconds, rounded up. */
export type HitRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/** A verdict as `@nestjs/throttler` reads it. */
export function hitRecord({ allowed, remaining, retryAfter }: Verdict, rate: Rate): HitRecord {
  const totalHits = rate.burst - remaining;
  return {
    totalHits,
    timeToExpire: Math.ceil((totalHits * rate.interval) / 1000),
    isBlocked: !allowed,
    timeToBlockExpire: Math.ceil(retryAfter / 1000),
  };
}
