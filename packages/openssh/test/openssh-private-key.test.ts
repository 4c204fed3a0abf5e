import { type KeyObject, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  publicKeyBlob,
  publicKeyLine,
  readPrivateKey,
  writePrivateKey,
} from '../src/private-key.js';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const openSsh = writePrivateKey(privateKey, 'comment');

describe('the private key of the authority', () => {
  it.each(['', 'a', 'ab', 'abc', 'abcd', 'abcde', 'abcdef', 'abcdefg', 'abcdefgh'])(
    'is read as it was written, with any padding (comment "%s")',
    (comment) => {
      expect(readPrivateKey(writePrivateKey(privateKey, comment)).equals(privateKey)).toBe(true);
    },
  );

  it('is read as PKCS#8 PEM', () => {
    const pem = pemOf(privateKey);
    expect(readPrivateKey(pem).equals(privateKey)).toBe(true);
  });

  it('is read with Windows newlines and surrounding blanks', () => {
    const text = ` \r\n${openSsh.replaceAll('\n', '\r\n')}\r\n`;
    expect(readPrivateKey(text).equals(privateKey)).toBe(true);
  });

  it('has the public line of its key', () => {
    const line = publicKeyLine(publicKeyBlob(privateKey), 'ca');
    const { x = '' } = publicKey.export({ format: 'jwk' });
    const point = Buffer.from(x, 'base64url').toString('hex');
    expect(line).toMatch(/^ssh-ed25519 [A-Za-z0-9+/]{68} ca$/);
    expect(Buffer.from(line.split(' ')[1] ?? '', 'base64').toString('hex')).toBe(
      `0000000b${Buffer.from('ssh-ed25519').toString('hex')}00000020${point}`,
    );
  });
});

describe('text that is not a usable key of the authority', () => {
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey;
  const strangersPoint = publicKeyBlob(generateKeyPairSync('ed25519').privateKey).subarray(-32);
  it.each([
    ['an EC key of another curve', pemOf(ec), /type ec, and must be Ed25519 or P-256/],
    [
      'an encrypted PKCS#8 key',
      pemOf(privateKey, { cipher: 'aes-256-cbc', passphrase: 'x' }),
      /encrypted/,
    ],
    ['an encrypted OpenSSH key', patched('none', 'aes2'), /encrypted/],
    [
      'an OpenSSH key of another type',
      patched('ssh-ed25519', 'ssh-ed25518', 'last'),
      /ssh-ed25518/,
    ],
    ['a public half of another key in front', swapped('first'), /public half/],
    ['a public half of another key behind', swapped('last'), /public half/],
    ['a public key', publicKeyLine(publicKeyBlob(privateKey), ''), /public key/],
    [
      'a PEM public key',
      publicKey.export({ type: 'spki', format: 'pem' }).toString(),
      /public key/,
    ],
    [
      'a damaged PKCS#8 key',
      '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----',
      /damaged/,
    ],
    ['an OpenSSH key without its end', openSsh.slice(0, 200), /PEM lines/],
    ['an OpenSSH key that is another file', armor(Buffer.alloc(200)), /does not begin/],
    ['an OpenSSH key cut short inside', armor(unarmored().subarray(0, 120)), /middle of a field/],
    ['garbage', 'garbage', /neither/],
    ['nothing', '', /neither/],
  ])('%s', (_, text, message) => {
    expect(() => readPrivateKey(text)).toThrow(message);
  });

  it('is refused or harmless after any damage, and its bytes are never shown', () => {
    const file = unarmored();
    const outcomes = Array.from(file, (byte, at) =>
      outcomeOf(armor(Buffer.from(file.with(at, byte ^ 0x41)))),
    );
    expect(new Set(outcomes)).toEqual(new Set(['the same key', 'SshFormatError']));
  });

  function swapped(which: 'first' | 'last'): string {
    const file = unarmored();
    const point = publicKeyBlob(privateKey).subarray(-32);
    if (which === 'first') {
      strangersPoint.copy(file, file.indexOf(point));
    } else {
      strangersPoint.copy(file, file.indexOf(point, file.indexOf(point) + 32));
    }
    return armor(file);
  }
});

function outcomeOf(text: string): string {
  try {
    return readPrivateKey(text).equals(privateKey) ? 'the same key' : 'another key';
  } catch (error) {
    return error instanceof Error ? error.name : 'no error at all';
  }
}

function pemOf(key: KeyObject, passphrase: { cipher?: string; passphrase?: string } = {}): string {
  return key.export({ type: 'pkcs8', format: 'pem', ...passphrase }).toString();
}

function unarmored(): Buffer {
  return Buffer.from(openSsh.replaceAll(/-----.*-----/g, ''), 'base64');
}

function armor(file: Buffer): string {
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${file.toString('base64')}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

/**
 * Returns the private key file with one occurrence of a name replaced by another of the same
 * length.
 */
function patched(from: string, to: string, which: 'first' | 'last' = 'first'): string {
  const file = unarmored();
  file.write(to, which === 'first' ? file.indexOf(from) : file.lastIndexOf(from));
  return armor(file);
}
