import { describe, expect, it } from 'vitest';
import { GRACE } from '#platform/gcra/gcra.js';
import { DenialCache } from '#platform/rate-limit/buckets/denial-cache.js';
import { KeyedSemaphore } from '#platform/rate-limit/buckets/keyed-semaphore.js';

const RATE = { burst: 3, interval: 2000 };

describe('10.20 a denial of the database', () => {
  /**
   * Remembers a denial whose query was sent at 1000 and answered at 1040. Returns a function that
   * returns a credential's wait.
   */
  function remembered(holders: readonly string[]) {
    const refusals = new DenialCache();
    const bookings = holders.map((holder, n) => ({ holder, slot: (n + 1) * 2000 }));
    refusals.remember('bucket', { debt: 6000, bookings }, 1000, 1040);
    return (holder: string, now: number) =>
      refusals.find({ bucket: 'bucket', holder, rate: RATE }, now)?.retryAfter;
  }

  it('holds for a booking until its slot is near, and announces a wait that is long enough', () => {
    const wait = remembered(['ada']);
    expect(wait('ada', 1040)).toBe(2000);
    expect(wait('ada', 1000 + 2000 - GRACE - 1)).toBe(40 + GRACE + 1);
    expect(wait('ada', 1000 + 2000 - GRACE)).toBeUndefined();
  });

  it('does not hold for other credentials while places are free', () => {
    const wait = remembered(['ada', 'bob']);
    expect(wait('eve', 1040)).toBeUndefined();
  });

  it('holds for every other credential while all places are taken, and announces the end of the queue', () => {
    const wait = remembered(['ada', 'bob', 'cem']);
    expect(wait('eve', 1040)).toBe(8000);
    expect(wait('eve', 2000)).toBe(8000 - 960);
    expect(wait('eve', 1000 + 2000 - GRACE)).toBeUndefined(); // the first place may be free
  });
});

describe('10.20 the limit of tasks for each key', () => {
  it('runs a limited number at a time for each key, in order of arrival', async () => {
    const turns = new KeyedSemaphore();
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    const run = (key: string, name: string) =>
      turns.run(key, 2, async () => {
        begun.push(name);
        await new Promise<void>((resolve) => ends.push(resolve));
      });
    const all = [run('a', 'a1'), run('a', 'a2'), run('a', 'a3'), run('a', 'a4'), run('b', 'b1')];
    await Promise.resolve();
    expect(begun).toEqual(['a1', 'a2', 'b1']);
    while (ends.length > 0) {
      ends.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(all);
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a3', 'a4']);
  });

  it('continues after a task that failed', async () => {
    const turns = new KeyedSemaphore();
    const failed = turns.run('a', 1, () => Promise.reject(new Error('no')));
    const next = turns.run('a', 1, () => Promise.resolve('yes'));
    await expect(failed).rejects.toThrow('no');
    expect(await next).toBe('yes');
  });
});
