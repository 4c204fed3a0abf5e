import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readAuthorityKeys } from '../src/authority-keys.js';
import { publicKeyBlob, publicKeyLine, writePrivateKey } from '../src/private-key.js';
import { newPublicKeyLine } from '../../../test/support/ssh-public-keys.js';

const ed25519 = () => generateKeyPairSync('ed25519').privateKey;
const p256 = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const pkcs8 = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString();
const spki = (key: KeyObject) =>
  createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
const line = (key: KeyObject) => publicKeyLine(publicKeyBlob(key), 'ca');

describe('the keys of an authority', () => {
  it('are private blocks of either format, public lines and public PEM, in their order', () => {
    const [first, second, third, fourth, fifth] = [ed25519(), p256(), ed25519(), p256(), ed25519()];
    const text = [
      '# the key that signs',
      writePrivateKey(first, 'ca'),
      pkcs8(second),
      line(third),
      '',
      line(fourth),
      spki(fifth),
    ].join('\r\n');
    const keys = readAuthorityKeys(text);
    const expected = [first, second, third, fourth, fifth].map(publicKeyBlob);
    expect(keys.map(({ publicBlob }) => publicBlob)).toEqual(expected);
    expect(keys.map(({ privateKey }) => privateKey !== undefined)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
    expect(keys[1]?.privateKey?.equals(second)).toBe(true);
  });

  it('are each one key, also where the public half stands beside the private one', () => {
    const [first, second] = [ed25519(), p256()];
    const keys = readAuthorityKeys(
      [line(first), pkcs8(first), line(second), spki(second), pkcs8(second)].join('\n'),
    );
    expect(keys.map(({ publicBlob }) => publicBlob)).toEqual([first, second].map(publicKeyBlob));
    expect(keys.every(({ privateKey }) => privateKey !== undefined)).toBe(true);
  });

  const key = ed25519();
  it.each([
    ['nothing', '', /neither/],
    ['comments alone', '# a\n# b', /neither/],
    ['an RSA line behind the key', `${pkcs8(key)}${newPublicKeyLine('rsa')}`, /^key 2: .*ssh-rsa/],
    ['a damaged line behind the key', `${pkcs8(key)}ssh-ed25519 AAAA`, /^key 2: .*damaged/],
    [
      'a public key of another curve',
      `${pkcs8(key)}${spki(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey)}`,
      /^key 2: .*must be Ed25519 or P-256/,
    ],
    ['a block without its end', `${pkcs8(key)}-----BEGIN PRIVATE KEY-----\nabc`, /^key 2: /],
    ['other text behind the key', `${pkcs8(key)}not-a-key-but-a-secret`, /^key 2: it is neither/],
  ])('are refused: %s', (_, text, message) => {
    expect(() => readAuthorityKeys(text)).toThrow(message);
    expect(() => readAuthorityKeys(text)).not.toThrow(/secret/);
  });
});
