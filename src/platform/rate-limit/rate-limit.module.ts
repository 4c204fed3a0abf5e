import { Logger, Module } from '@nestjs/common';
import { ThrottlerModule, type ThrottlerModuleOptions } from './buckets/throttler.js';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DatabaseBuckets } from './buckets/database-buckets.js';
import { LocalBuckets } from './buckets/local-buckets.js';
import { RateLimitsRepository } from './buckets/rate-limits.repository.js';
import { TIERS } from './buckets/tiers.js';

/**
 * Provides the rate limits to TierGuard by `@nestjs/throttler`: its options and its storage. The
 * buckets are in the database if the operator configured one, or if there are several workers, so
 * that all processes share them. A single process with the embedded database has its buckets in its
 * memory.
 *
 * Certification test mode turns all limits off.
 */
@Module({
  imports: [
    ThrottlerModule.forRootAsync({
      inject: [CONFIG, EntityManager, Clock],
      useFactory: throttling,
    }),
  ],
})
export class RateLimitModule {}

function throttling(
  { certification, database, workers }: Config,
  manager: EntityManager,
  clock: Clock,
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
      database.url === undefined && workers === 1
        ? new LocalBuckets(undefined, clock)
        : new DatabaseBuckets(manager, new RateLimitsRepository(), new Logger('rate-limit'), clock),
  };
}
