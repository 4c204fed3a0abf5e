import { expect, it } from 'vitest';
import { Float64Map } from '#platform/gcra/float64-map.js';

it('behaves like a Map, with any collision and after any growth', () => {
  const table = new Float64Map();
  const map = new Map<number, number>();
  const put = (key: number, value: number) => {
    table.set(key, value);
    map.set(key, value);
  };
  for (let n = 1; n <= 500; n += 1) put(n * 2 ** 32, n); // all hash to the same slot
  for (let n = 1; n <= 100_000; n += 1) put(n * 7919, n);
  for (let n = 1; n <= 100_000; n += 3) put(n * 7919, -n);
  expect(table.size).toBe(map.size);
  const wrong = [...map].filter(([key, value]) => table.get(key) !== value);
  expect(wrong).toEqual([]);
  expect(table.get(5)).toBeUndefined();
  expect(table.get(501 * 2 ** 32)).toBeUndefined();
});
