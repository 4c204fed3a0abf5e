import { expect, it } from 'vitest';
import { GenerationalMap } from '#platform/gcra/generational-map.js';

it('keeps a value for its whole lifetime, and for less than twice that', () => {
  for (let offset = 0; offset < 30; offset += 1) {
    const memory = new GenerationalMap(30, () => new Map<string, string>());
    memory.set('first', 'sets the turns', 0);
    memory.set('key', 'value', offset);
    expect(memory.get('key', offset + 29)).toBe('value');
    expect(memory.get('key', offset + 60)).toBeUndefined();
  }
});

it('restarts the lifetime of a value that is set again', () => {
  const memory = new GenerationalMap(30, () => new Map<string, number>());
  for (let now = 0; now < 1000; now += 7) {
    memory.set('key', now, now);
    expect(memory.get('key', now + 1)).toBe(now);
  }
});

it('is empty at the next look after a long pause', () => {
  const memory = new GenerationalMap(30, () => new Map<string, number>());
  for (let n = 0; n < 100; n += 1) memory.set(`key ${n}`, n, n % 40);
  expect(memory.get('key 99', 10_000)).toBeUndefined();
  expect(memory.size).toBe(0);
});

it('never grows beyond twice the limit that new entries respect', () => {
  const memory = new GenerationalMap(30, () => new Map<string, number>());
  const limit = 100;
  const regulars: string[] = [];
  for (let now = 0; now < 3000; now += 30) {
    for (let n = 0; n < limit; n += 1) {
      if (memory.size >= limit) break;
      const newcomer = `${now} ${n}`;
      regulars.push(newcomer);
      memory.set(newcomer, n, now);
    }
    for (const regular of regulars) {
      if (memory.get(regular, now) !== undefined) memory.set(regular, 1, now);
    }
    expect(memory.size).toBeLessThanOrEqual(2 * limit);
  }
});
