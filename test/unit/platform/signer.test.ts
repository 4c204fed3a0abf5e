import { generateKeyPairSync, sign, verify, type KeyObject } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { localSigner, rawEcdsaSignature } from '#platform/crypto/signer.js';

const MESSAGE = Buffer.from('a message of any length');
const HALF = 32;

/** Writes an INTEGER in DER in its shortest form. */
function derInteger(value: bigint): Buffer {
  const digits = value.toString(16);
  const bytes = Buffer.from(digits.padStart(digits.length + (digits.length % 2), '0'), 'hex');
  const padded = (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes;
  return Buffer.concat([Buffer.of(0x02, padded.length), padded]);
}

function derSignature(r: bigint, s: bigint): Buffer {
  const body = Buffer.concat([derInteger(r), derInteger(s)]);
  return Buffer.concat([Buffer.of(0x30, body.length), body]);
}

const raw = (r: bigint, s: bigint) =>
  Buffer.from([r, s].map((half) => half.toString(16).padStart(HALF * 2, '0')).join(''), 'hex');

describe('a local signer', () => {
  const pairs: readonly [string, { privateKey: KeyObject; publicKey: KeyObject }][] = [
    ['ES256', generateKeyPairSync('ec', { namedCurve: 'P-256' })],
    ['RS256', generateKeyPairSync('rsa', { modulusLength: 3072 })],
    ['Ed25519', generateKeyPairSync('ed25519')],
  ];

  it.each(pairs)('signs by %s in the raw form', async (alg, { privateKey, publicKey }) => {
    const signer = localSigner(privateKey);
    const signature = await signer.sign(MESSAGE);
    expect(signer.alg).toBe(alg);
    expect(signature).toHaveLength(alg === 'RS256' ? 384 : 64);
    const digest = alg === 'Ed25519' ? null : 'sha256';
    const key = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const;
    expect(verify(digest, MESSAGE, key, signature)).toBe(true);
    expect(verify(digest, Buffer.from('another'), key, signature)).toBe(false);
  });

  it('refuses a key of another curve', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
    expect(() => localSigner(privateKey)).toThrow('only P-256');
  });
});

describe('a P-256 signature in DER', () => {
  const high = 2n ** 255n + 5n;

  it.each([
    ['two halves with the high bit', high, high],
    ['a short r', 7n, high],
    ['a short s with its own high bit', high, 0x80n],
    ['both of one byte', 1n, 0x7fn],
    ['an r of 31 bytes', 2n ** 247n - 1n, 2n ** 254n],
  ])('with %s becomes r || s of 64 bytes', (_name, r, s) => {
    expect(rawEcdsaSignature(derSignature(r, s))).toEqual(raw(r, s));
  });

  it('of OpenSSL verifies in the raw form, 300 of 300', () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const key = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const;
    const results = Array.from({ length: 300 }, () =>
      verify('sha256', MESSAGE, key, rawEcdsaSignature(sign('sha256', MESSAGE, privateKey))),
    );
    expect(results.every(Boolean)).toBe(true);
  });

  const sound = derSignature(high, high);
  const cases: readonly [string, Buffer][] = [
    ['nothing', Buffer.alloc(0)],
    ['another tag', Buffer.concat([Buffer.of(0x31), sound.subarray(1)])],
    ['a byte too many', Buffer.concat([sound, Buffer.of(0)])],
    ['a byte too few', sound.subarray(0, -1)],
    ['a negative r', Buffer.from('3006020180020101', 'hex')],
    ['a padded r', Buffer.from('300702020001020101', 'hex')],
    ['an r of no byte', Buffer.from('30050200020101', 'hex')],
    ['an r of 33 bytes', derSignature(2n ** 263n, 1n)],
    ['a length beyond the end', Buffer.from('3006020101027f01', 'hex')],
    ['a third integer', Buffer.from('3009020101020101020101', 'hex')],
  ];
  it.each(cases)('with %s is refused', (_name, der) => {
    expect(() => rawEcdsaSignature(der)).toThrow(RangeError);
  });
});
