import { expect, it } from 'vitest';
import { Semaphore } from '#platform/database/tenants/semaphore.js';

const LONG = 60_000;

it('runs as many tasks as it has permits, and serves waiting tasks in order of arrival', async () => {
  const semaphore = new Semaphore(2);
  const first = await semaphore.take(LONG);
  const second = await semaphore.take(LONG);
  const served: number[] = [];
  const waiting = [3, 4].map(async (who) => {
    const giveBack = await semaphore.take(LONG);
    served.push(who);
    return giveBack;
  });
  expect(await semaphore.take(0)).toBeUndefined();
  expect(served).toEqual([]);
  second?.();
  const third = await waiting[0];
  expect(served).toEqual([3]);
  first?.();
  const fourth = await waiting[1];
  expect(served).toEqual([3, 4]);
  expect(semaphore.isIdle).toBe(false);
  third?.();
  fourth?.();
  expect(semaphore.isIdle).toBe(true);
});
