import { describe, expect, it } from 'vitest';
import { readCanonicalCbor, Refusal } from '@svc/webauthn-policy';

const read = (hex: string) => readCanonicalCbor(Buffer.from(hex, 'hex'));

describe('an integer of 8 bytes', () => {
  it.each([
    ['the smallest one', '1b0000000100000000', 2n ** 32n],
    ['the largest one', '1bffffffffffffffff', 2n ** 64n - 1n],
    ['the smallest negative one', '3b0000000100000000', -1n - 2n ** 32n],
  ])('is read: %s', (_, hex, value) => {
    expect(read(hex)).toEqual([value]);
  });

  it.each([
    ['0', '1b0000000000000000'],
    ['the largest of 4 bytes', '1b00000000ffffffff'],
    ['-1', '3b0000000000000000'],
    ['the largest negative of 4 bytes', '3b00000000ffffffff'],
    ['inside an array', '82011b0000000000000001'],
    ['as the value of a map', 'a1011b0000000000000001'],
    ['as a key beside the same key of 1 byte', 'a201021b000000000000000103'],
    ['behind a tag', 'd9d9f71b0000000000000001'],
  ])('is refused if it needs fewer bytes: %s', (_, hex) => {
    expect(() => read(hex)).toThrow(Refusal);
  });
});
