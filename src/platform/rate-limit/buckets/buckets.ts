import type { ThrottlerStorage } from '@nestjs/throttler';
import type { Rate, Verdict } from '#platform/gcra/gcra.js';
import { hitRecord, type HitRecord } from '#platform/gcra/hit-record.js';

/** One request, as the limiter sees it. */
export interface Hit {
  /** The tier and the client's address. */
  readonly bucket: string;
  readonly tier: string;
  readonly rate: Rate;
  /** Tells which credential came along, as a hash; clients without one are one holder. */
  readonly holder: () => string;
}

/** The holder of bookings of requests without a credential. */
export const NO_CREDENTIAL = '';

/** The buckets of the rate limits: in this process's memory, or shared in the database. */
export abstract class Buckets implements ThrottlerStorage {
  /** Decides about a request; one that is refused books a place. */
  abstract take(hit: Hit): Promise<Verdict>;

  /**
   * The verdict that a request would meet at this moment, as far as this process knows. It takes and books nothing, and never
   * asks the database. `remaining` counts that request too.
   */
  abstract peek(hit: Hit): Verdict;

  /** Counts a request that was let through without asking this bucket, up to its burst. */
  abstract charge(hit: Hit): void;

  /** Decides about a request without a credential, in the terms of `@nestjs/throttler`. */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    _blockDuration: number,
    tier: string,
  ): Promise<HitRecord> {
    const rate = { burst: limit, interval: ttl / limit };
    return hitRecord(
      await this.take({ bucket: key, tier, rate, holder: () => NO_CREDENTIAL }),
      rate,
    );
  }
}
