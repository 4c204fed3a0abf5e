import { expect, it } from 'vitest';
import { Turns } from '#domain/scim/turns.js';

const LONG = 60_000;

it('serves as many as there are places, and then who waits in the order of coming', async () => {
  const turns = new Turns(2);
  const first = await turns.take(LONG);
  const second = await turns.take(LONG);
  const served: number[] = [];
  const waiting = [3, 4].map(async (who) => {
    const giveBack = await turns.take(LONG);
    served.push(who);
    return giveBack;
  });
  expect(await turns.take(0)).toBeUndefined();
  expect(served).toEqual([]);
  second?.();
  const third = await waiting[0];
  expect(served).toEqual([3]);
  first?.();
  const fourth = await waiting[1];
  expect(served).toEqual([3, 4]);
  expect(turns.isIdle).toBe(false);
  third?.();
  fourth?.();
  expect(turns.isIdle).toBe(true);
});
