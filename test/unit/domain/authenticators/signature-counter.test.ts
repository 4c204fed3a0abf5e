import { expect, it } from 'vitest';
import { counterGrows } from '#domain/authenticators/signature-counter.js';

it.each([
  [0, 0, true],
  [0, 1, true],
  [5, 6, true],
  [5, 5, false],
  [5, 4, false],
  [5, 0, false],
  [0xffff_ffff, 0, false],
])('after the counter %i, %i is accepted: %s', (stored, reported, accepted) => {
  expect(counterGrows(stored, reported)).toBe(accepted);
});
