import { Logger, Module } from '@nestjs/common';
import { ThrottlerModule, type ThrottlerModuleOptions } from '@nestjs/throttler';
import { EntityManager } from 'typeorm';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DatabaseBuckets } from '#platform/rate-limit/buckets/database-buckets.js';
import { LocalBuckets } from '#platform/rate-limit/buckets/local-buckets.js';
import { RateLimitsRepository } from '#platform/rate-limit/buckets/rate-limits.repository.js';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';

@Module({ providers: [RateLimitsRepository], exports: [RateLimitsRepository] })
class BucketsModule {}

/**
 * The rate limits, on `@nestjs/throttler`: its options and its storage, for the TierGuard. With a database of the operator's
 * there may be replicas, and they share their buckets in it; the embedded one has this process alone.
 *
 * Certification test mode turns all limits off.
 */
@Module({
  imports: [
    ThrottlerModule.forRootAsync({
      imports: [BucketsModule],
      inject: [CONFIG, EntityManager, RateLimitsRepository],
      useFactory: throttling,
    }),
  ],
})
export class RateLimitModule {}

function throttling(
  { certification, database }: Config,
  manager: EntityManager,
  repository: RateLimitsRepository,
): ThrottlerModuleOptions {
  const isOff = certification.token !== undefined;
  return {
    throttlers: Object.entries(TIERS).map(([name, { burst, interval }]) => ({
      name,
      limit: burst,
      ttl: burst * interval,
    })),
    skipIf: () => isOff,
    storage:
      database.url === undefined
        ? new LocalBuckets()
        : new DatabaseBuckets(manager, repository, new Logger('rate-limit')),
  };
}
