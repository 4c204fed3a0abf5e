import type { Rate, Decision } from '#platform/gcra/gcra.js';
import { hitRecord, type HitRecord, type ThrottlerStorage } from './throttler.js';

/** A request that a bucket decides about. */
export interface Hit {
  /** The key of the bucket: the tier and the client's address. */
  readonly bucket: string;
  readonly tier: string;
  readonly rate: Rate;
  /** Returns the holder of the request's booking: its credential, method and path. */
  readonly holder: () => string;
}

/** The holder of bookings of requests without a credential. */
export const NO_CREDENTIAL = '';

/** The buckets of the rate limits, in this process's memory or shared in the database. */
export abstract class Buckets implements ThrottlerStorage {
  /** Decides whether a request is let through. A refused request books a place in the queue. */
  abstract take(hit: Hit): Promise<Decision>;

  /**
   * Returns the decision for a request at this moment, from what this process knows. It counts and
   * books nothing, and sends no statement. `remaining` is the number of requests that would be let
   * through, that request included.
   */
  abstract peek(hit: Hit): Decision;

  /**
   * Counts a request that was let through without a decision of this bucket. The debt of the bucket
   * never becomes larger than its burst allows.
   */
  abstract charge(hit: Hit): void;

  /** Decides about a request without a credential, for `@nestjs/throttler`. */
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
