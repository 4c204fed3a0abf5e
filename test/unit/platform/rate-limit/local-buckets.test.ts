import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hitOf } from '#platform/rate-limit/hit.js';
import { LocalBuckets } from '#platform/rate-limit/buckets/local-buckets.js';
import type { TierName } from '#platform/http/routing/route-policy.js';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';

const ask = (buckets: LocalBuckets, client: string, tier: TierName = 'general') => {
  const { burst, interval } = TIERS[tier];
  return buckets.increment(`${tier} ${client}`, burst * interval, burst, 0, tier);
};

/**
 * Sends requests until one is refused. Returns how many were allowed, and the wait until the next
 * is.
 */
async function exhaust(buckets: LocalBuckets, client: string, tier: TierName = 'general') {
  for (let admitted = 0; ; admitted += 1) {
    const { isBlocked, timeToBlockExpire } = await ask(buckets, client, tier);
    if (isBlocked) return { admitted, wait: timeToBlockExpire };
  }
}

describe('the buckets of one process', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each(Object.keys(TIERS) as TierName[])(
    'a client that waits as long as %s states is never refused twice in a row',
    async (tier) => {
      const buckets = new LocalBuckets();
      await exhaust(buckets, '192.0.2.1', tier);
      for (let round = 0; round < 200; round += 1) {
        vi.advanceTimersByTime((round * 37) % 1700); // refused at any moment of an interval
        const { wait } = await exhaust(buckets, '192.0.2.1', tier);
        expect([1, 2]).toContain(wait);
        vi.advanceTimersByTime(wait * 1000);
        expect((await ask(buckets, '192.0.2.1', tier)).isBlocked).toBe(false);
      }
    },
  );

  const take = (buckets: LocalBuckets, holder: string) =>
    buckets.take(hitOf('general', '192.0.2.1', () => holder));

  it('10.20 an announced slot is kept among 10,000 invented credentials', async () => {
    const buckets = new LocalBuckets();
    await exhaust(buckets, '192.0.2.1');
    const { retryAfter } = await take(buckets, 'patient');
    const told = Math.ceil(retryAfter / 1000) * 1000;
    for (let n = 0; n < 10_000; n += 1) {
      if (n % 10 === 0) vi.advanceTimersByTime(told / 1000);
      await take(buckets, `invented ${n}`);
    }
    expect((await take(buckets, 'patient')).allowed).toBe(true);
  });

  it('10.20 bookings allow no more requests than the rate', async () => {
    const buckets = new LocalBuckets();
    const rounds = 60;
    let admitted = 0;
    for (let n = 0; n < rounds * 200; n += 1) {
      if (n % 20 === 0) vi.advanceTimersByTime(100);
      if ((await take(buckets, `holder ${n % 33}`)).allowed) admitted += 1;
    }
    expect(admitted).toBeGreaterThan(rounds); // one each second, and most of the burst
    expect(admitted).toBeLessThanOrEqual(20 + rounds);
  });

  it('10.words a look consumes nothing, and counts what is left beside the bookings of others', async () => {
    const buckets = new LocalBuckets();
    const hit = hitOf('general', '192.0.2.1');
    for (let n = 0; n < 10; n += 1) expect(buckets.peek(hit).remaining).toBe(20);
    await ask(buckets, '192.0.2.1');
    expect(buckets.peek(hit)).toEqual({ allowed: true, remaining: 19, retryAfter: 0 });
    await exhaust(buckets, '192.0.2.1');
    expect(buckets.peek(hit)).toMatchObject({ allowed: false, remaining: 0 });
    vi.advanceTimersByTime(2000);
    expect(buckets.peek(hit)).toMatchObject({ allowed: true, remaining: 1 }); // and the booked one
  });

  it('each client and each tier has its own bucket', async () => {
    const buckets = new LocalBuckets();
    expect((await exhaust(buckets, '192.0.2.1')).admitted).toBe(20);
    expect((await exhaust(buckets, '192.0.2.2')).admitted).toBe(20);
    expect((await exhaust(buckets, '192.0.2.1', 'issuance')).admitted).toBe(15);
    expect((await exhaust(buckets, '192.0.2.1', 'authentication')).admitted).toBe(8);
  });

  it('a client does not lose its debt among 50,000 other clients', async () => {
    const buckets = new LocalBuckets(1000);
    await exhaust(buckets, 'mallory', 'authentication');
    for (let n = 0; n < 50_000; n += 1) await ask(buckets, `crowd ${n}`);
    expect((await ask(buckets, 'mallory', 'authentication')).isBlocked).toBe(true);
    for (let passed = 0; passed < 16_000; passed += 100) {
      vi.advanceTimersByTime(100);
      await ask(buckets, `crowd ${passed}`);
      const { admitted } = await exhaust(buckets, 'mallory', 'authentication');
      expect(admitted).toBe((passed + 100) % 2000 === 0 ? 1 : 0);
    }
  });

  it('new clients share the overflow buckets when the table is full, and are never unlimited', async () => {
    const buckets = new LocalBuckets(1000);
    for (let n = 0; n < 1000; n += 1) await ask(buckets, `early ${n}`);
    let admitted = 0;
    for (let n = 0; n < 200_000; n += 1) {
      if (!(await ask(buckets, `late ${n}`)).isBlocked) admitted += 1;
    }
    expect(admitted).toBeLessThanOrEqual(4096 * 20);
    expect((await exhaust(buckets, 'early 7')).admitted).toBe(19);
    vi.advanceTimersByTime(61_000);
    expect((await exhaust(buckets, 'late 7')).admitted).toBe(20);
  });
});
