import type { Rate, Decision } from '#platform/gcra/gcra.js';
import { hitRecord, type HitRecord, type ThrottlerStorage } from './throttler.js';

/**
 * A request that counts in a bucket, which is the state of the rate limit of one client in one
 * tier.
 */
export interface Hit {
  /** The key of the bucket: the tier and the client's address. */
  readonly bucket: string;
  readonly tier: string;
  readonly rate: Rate;
  /**
   * Returns the text that names this request as the holder of a booking, which reserves the moment
   * at which a refused client may try again. The text has hashes of the credential, and of the
   * method and path.
   */
  readonly holder: () => string;
  /**
   * Is called when the database is asked for the decision. It may begin work that only reads, so
   * that a database that is far away is waited for once.
   */
  readonly whileAsked?: () => void;
}

/**
 * Takes the place of the credential in the text of a booking's holder, for requests without a
 * credential.
 */
export const NO_CREDENTIAL = '';

/**
 * The buckets of the rate limits, each with the state of one client in one tier. They are in the
 * memory of this process or shared in the database.
 */
export abstract class Buckets implements ThrottlerStorage {
  /**
   * Decides whether a request is allowed. A refused request books the moment at which the client
   * may repeat it.
   */
  abstract take(hit: Hit): Promise<Decision>;

  /**
   * Returns the decision that a request would get at this moment, from what this process knows. It
   * counts and books nothing, and sends no statement to the database. `remaining` includes that
   * request.
   */
  abstract peek(hit: Hit): Decision;

  /**
   * Counts a request that was allowed without asking this bucket. The debt of the bucket never
   * becomes larger than its burst allows.
   */
  abstract charge(hit: Hit): void;

  /** Decides about a request without a credential. `@nestjs/throttler` calls this method. */
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
