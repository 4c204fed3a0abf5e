import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ed25519PointFault } from '../src/ed25519-point.js';

const fault = (hex: string): string | undefined => ed25519PointFault(Buffer.from(hex, 'hex'));

describe('an Ed25519 public key (RFC 8032 §5.1.3)', () => {
  it('accepts every genuine key', () => {
    for (let round = 0; round < 200; round += 1) {
      const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
      expect([x, ed25519PointFault(Buffer.from(x, 'base64url'))]).toEqual([x, undefined]);
    }
  });

  it('says the same of a key each time', () => {
    const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
    const known = Buffer.from(x, 'base64url');
    const keys = [known, Buffer.from(`02${'00'.repeat(31)}`, 'hex'), Buffer.alloc(32)];
    const faults = () => keys.map((key) => ed25519PointFault(key));
    expect(faults()).toEqual(faults());
    expect(faults()).toEqual([undefined, expect.any(String), expect.any(String)]);
    // With the other sign of x, the bytes are another valid key.
    known[31] = (known[31] ?? 0) ^ 0x80;
    expect(ed25519PointFault(known)).toBeUndefined();
  });

  // The eight points of small order, with both signs if a sign bit is possible.
  it.each([
    '0100000000000000000000000000000000000000000000000000000000000000',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    '0000000000000000000000000000000000000000000000000000000000000000',
    '0000000000000000000000000000000000000000000000000000000000000080',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  ])('refuses the small-order point %s, for which signatures can be forged', (point) => {
    expect(fault(point)).toContain('small order');
  });

  it.each([
    'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f', // y = p, so 0 again
    'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', // y = p + 1, so 1 again
    'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  ])('refuses %s, a second spelling of a smaller number', (point) => {
    expect(fault(point)).toContain('canonical');
  });

  it.each([
    // For y = 2 and for y = 7, the equation of the curve has no solution x. Decoders by RFC 8032
    // refuse both, too.
    '0200000000000000000000000000000000000000000000000000000000000000',
    '0700000000000000000000000000000000000000000000000000000000000000',
  ])('refuses %s, which is not on the curve', (point) => {
    expect(fault(point)).toContain('not on the curve');
  });
});
