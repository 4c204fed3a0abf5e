import { hash, randomBytes } from 'node:crypto';
import type { ThrottlerStorage } from '@nestjs/throttler';
import { gcra } from './gcra.js';
import { hitRecord, type HitRecord } from './hit-record.js';
import { NumberTable } from './number-table.js';
import { ShortMemory } from './short-memory.js';
import { LONGEST_DEBT } from './tiers.js';

/** How many buckets there may be when a client opens one of its own: 32 bytes each at most, in two generations. */
const MOST_BUCKETS = 1_000_000;

/** How many buckets a tier has for those who come when there is no room. */
const CROWDS = 4096;

/**
 * The buckets of one process, in its memory.
 *
 * A bucket is forgotten only when it is out of debt: nobody gets rid of a debt by hiding in a crowd. When there is no room,
 * because a million clients came within half a minute to a minute, newcomers share buckets with each other at random. That
 * refuses too many rather than too few, and whoever has a bucket keeps it.
 */
export class LocalBuckets implements ThrottlerStorage {
  /** The theoretical arrival times of buckets, by 48 bits of the hash of their keys. */
  readonly #tats = new ShortMemory(LONGEST_DEBT, () => new NumberTable());
  /** Keeps from being worked out who shares a bucket with whom. */
  readonly #salt = randomBytes(16).toString('hex');

  /** @param most how many clients have a bucket of their own */
  constructor(private readonly most = MOST_BUCKETS) {}

  /** Takes a request into account: at most `limit` at once, and `limit` per `ttl` milliseconds. */
  increment(
    key: string,
    ttl: number,
    limit: number,
    _blockDuration: number,
    tier: string,
  ): Promise<HitRecord> {
    const now = Math.floor(performance.now());
    const rate = { burst: limit, interval: ttl / limit };
    const bucket = this.#bucketOf(key, tier, now);
    const decided = gcra(this.#tats.get(bucket, now) ?? now, now, rate);
    if (decided.allowed) this.#tats.set(bucket, decided.tat, now);
    return Promise.resolve(hitRecord(decided, rate));
  }

  #bucketOf(key: string, tier: string, now: number): number {
    const own = this.#digest(key);
    if (this.#tats.get(own, now) !== undefined || this.#tats.size < this.most) return own;
    return this.#digest(`${tier} crowd ${own % CROWDS}`);
  }

  /** Above 0. Two of a million have the same once in 500 times; then they share a bucket. */
  #digest(text: string): number {
    return 1 + Number.parseInt(hash('sha256', this.#salt + text).slice(0, 12), 16);
  }
}
