import type { Rate, Decision } from '#platform/gcra/gcra.js';
import { hitRecord, type HitRecord, type ThrottlerStorage } from './throttler.js';

/**
 * A request that counts in a bucket, which is the state of the rate limit of one client in one
 * tier.
 */
export interface Hit {
  /** The key of the bucket: the tier, and the IP address or network of the client. */
  readonly bucket: string;
  readonly tier: string;
  readonly rate: Rate;
  /**
   * Returns the text that identifies this request in a booking: a hash of the credential, and a
   * hash of the method and path. A booking reserves the moment at which a refused client may try
   * again. It may be called late or never, so no handler may change what it reads.
   */
  readonly holder: () => string;
  /**
   * Is called when the question to the database for the decision has been queued. It may begin
   * other reads of the database, so that the request waits for both at the same time.
   */
  readonly whileAsked?: () => void;
}

/** A request whose decision is left to the statement that does its work. */
export interface DeferredHit {
  /** The number of requests, this one included, that the process expects to be allowed now. */
  readonly remaining: number;
  /**
   * Returns the decision about a request that the statement has counted and admitted.
   *
   * @param debt the milliseconds until the bucket is equal to an unused one
   */
  readonly admit: (debt: number) => Decision;
  /**
   * Records that the statement begins. Until the deferral ends, other requests of the bucket wait,
   * because the statement locks the row of the bucket. Returns false if the deferral has ended, or
   * if another request of the bucket is being decided, so that the statement must not begin.
   */
  readonly begin: () => boolean;
  /** Ends the deferral, so that another request of the bucket may be deferred. */
  readonly end: () => void;
}

/**
 * Stands for the credential of a request without a credential, in the text of {@link Hit.holder}.
 */
export const NO_CREDENTIAL = '';

/**
 * The buckets of the rate limits, each with the state of one client in one tier. The buckets are in
 * the memory of this process, or shared in the database.
 */
export abstract class Buckets implements ThrottlerStorage {
  /**
   * Decides whether a request is allowed. A refused request books the moment at which the client
   * may repeat it.
   */
  abstract take(hit: Hit): Promise<Decision>;

  /**
   * Leaves the decision about a request to the statement that does the work of the request. It is
   * left only if this process knows of no reason to refuse the request, and at most for one request
   * of a bucket at a time.
   *
   * @returns undefined if the decision must come from {@link take}
   */
  abstract defer(hit: Hit): DeferredHit | undefined;

  /**
   * Returns the decision that a request would get at this moment, from what this process knows. It
   * counts and books nothing, and sends no statement to the database. `remaining` includes the
   * request itself.
   */
  abstract peek(hit: Hit): Decision;

  /**
   * Counts a request that was allowed without a decision of this bucket, such as a failed attempt
   * in the bucket of its network. The debt of a bucket is the time until the bucket is equal to an
   * unused one. The debt never exceeds what the burst allows.
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
