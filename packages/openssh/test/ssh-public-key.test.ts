import { createHash, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseSshPublicKey, SshKeyRefusal } from '../src/public-key.js';
import { sshString, sshStrings } from '../src/wire.js';

const P256 = ecPoint('P-256');
const E65537 = Buffer.of(1, 0, 1);

const KEYS = {
  'ssh-ed25519': line('ssh-ed25519', edPoint()),
  'ecdsa-sha2-nistp256': line('ecdsa-sha2-nistp256', 'nistp256', P256),
  'ecdsa-sha2-nistp384': line('ecdsa-sha2-nistp384', 'nistp384', ecPoint('P-384')),
  'ecdsa-sha2-nistp521': line('ecdsa-sha2-nistp521', 'nistp521', ecPoint('P-521')),
  'ssh-rsa': line('ssh-rsa', E65537, modulus(3072)),
  'sk-ssh-ed25519@openssh.com': line('sk-ssh-ed25519@openssh.com', edPoint(), 'ssh:'),
  'sk-ecdsa-sha2-nistp256@openssh.com': line(
    'sk-ecdsa-sha2-nistp256@openssh.com',
    'nistp256',
    P256,
    'ssh:work',
  ),
};
const ED25519 = KEYS['ssh-ed25519'];

describe('an accepted SSH public key', () => {
  it.each(Object.entries(KEYS))('%s', (type, text) => {
    const key = parseSshPublicKey(text);
    expect(key.type).toBe(type);
    expect(key.blob.toString('base64')).toBe(text.split(' ')[1]);
  });

  it.each([
    ['a comment of several words', `${ED25519} alice on her laptop`],
    ['a final newline', `${ED25519} alice@laptop\n`],
    ['a final Windows newline', `${ED25519}\r\n`],
    ['blanks around', `  ${ED25519}\t `],
    ['a tab between', ED25519.replace(' ', '\t')],
  ])('may be a line with %s', (_, text) => {
    expect(parseSshPublicKey(text).type).toBe('ssh-ed25519');
  });

  it('has the fingerprint of its blob, without padding', () => {
    const { blob, fingerprint } = parseSshPublicKey(ED25519);
    const digest = createHash('sha256').update(blob).digest('base64');
    expect(fingerprint).toBe(`SHA256:${digest.slice(0, 43)}`);
  });

  it('may be an RSA key of 16384 bits', () => {
    expect(parseSshPublicKey(line('ssh-rsa', E65537, modulus(16_384))).type).toBe('ssh-rsa');
  });
});

describe('an SSH public key of a refused type', () => {
  const pkcs8 = generateKeyPairSync('ed25519')
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();
  const spki = generateKeyPairSync('ed25519')
    .publicKey.export({ type: 'spki', format: 'pem' })
    .toString();
  it.each([
    ['an RSA key of 2048 bits', line('ssh-rsa', E65537, modulus(2048)), /RSA key of 2048 bits/],
    ['an RSA key of 3071 bits', line('ssh-rsa', E65537, modulus(3071)), /RSA key of 3071 bits/],
    ['an RSA key of 16385 bits', line('ssh-rsa', E65537, modulus(16_385)), /16384 are the most/],
    ['a DSA key', 'ssh-dss AAAAB3NzaC1kc3M=', /DSA/],
    [
      'a certificate',
      'ssh-ed25519-cert-v01@openssh.com AAAAIHNzaC1lZDI1NTE5LWNlcnQtdjAxQG9wZW5zc2guY29t',
      /certificate, not a public key/,
    ],
    [
      'a certificate that calls itself a key',
      `ssh-ed25519 ${sshString('ssh-ed25519-cert-v01@openssh.com').toString('base64')}`,
      /does not hold the ssh-ed25519 key/,
    ],
    ['a PKCS#8 private key', pkcs8, /private key/],
    [
      'an OpenSSH private key',
      '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE=\n-----END OPENSSH PRIVATE KEY-----',
      /private key/,
    ],
    ['a private key on one line', pkcs8.replaceAll('\n', ' '), /private key/],
    ['a private key behind a public one', `${ED25519}\n${pkcs8}`, /private key/],
    ['a PuTTY private key', 'PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none', /private key/],
    ['a PEM public key', spki, /not the one-line OpenSSH form/],
    ['several lines', `${ED25519}\n${ED25519}`, /exactly one/],
    ['options before the key', `command="sh" ${ED25519}`, /accepted key type/],
    ['an unknown type', 'ssh-ed448 AAAA', /accepted key type/],
    ['a property of every object', 'constructor AAAA', /accepted key type/],
    ['nothing', ' \n', /empty/],
    ['garbage', 'garbage', /accepted key type/],
    ['a type alone', 'ssh-ed25519', /base64/],
    ['base64 with other characters in it', ED25519.replace('AAAA', 'AA!AA'), /base64/],
    ['base64 in the URL alphabet', ED25519.replace(/.{4}$/, '-_-_'), /base64/],
    ['base64 without its padding', `ssh-ed25519 ${'A'.repeat(5)}`, /base64/],
  ])('%s', (_, text, message) => {
    expect(refusalOf(text)).toMatch(message);
  });

  it('is never repeated in the error when it is a private key', () => {
    const [, material = ''] = pkcs8.split('\n');
    expect(refusalOf(pkcs8)).not.toContain(material);
  });
});

describe('an SSH public key with a malformed body', () => {
  const flipped = Buffer.from(P256);
  flipped[64] = (flipped[64] ?? 0) ^ 1;
  const notOnCurve = Buffer.alloc(32);
  notOnCurve[0] = 2;
  const identity = Buffer.alloc(32);
  identity[0] = 1;
  it.each([
    ['another type inside than outside', relabelled('ssh-ed25519', 'ssh-rsa'), /does not hold/],
    ['an Ed25519 point of 31 bytes', line('ssh-ed25519', edPoint().subarray(1)), /32 bytes/],
    ['an Ed25519 point off the curve', line('ssh-ed25519', notOnCurve), /not on the curve/],
    ['an Ed25519 point of small order', line('ssh-ed25519', identity), /small order/],
    ['an ECDSA point off the curve', line('ecdsa-sha2-nistp256', 'nistp256', flipped), /curve/],
    [
      'the point at infinity',
      line('ecdsa-sha2-nistp256', 'nistp256', Buffer.of(0)),
      /uncompressed/,
    ],
    [
      'a compressed ECDSA point',
      line('ecdsa-sha2-nistp256', 'nistp256', Buffer.concat([Buffer.of(2), P256.subarray(1, 33)])),
      /uncompressed/,
    ],
    ['a curve that is not its type’s', line('ecdsa-sha2-nistp384', 'nistp256', P256), /curve/],
    ['a point of another curve', line('ecdsa-sha2-nistp384', 'nistp384', P256), /uncompressed/],
    ['an even RSA exponent', line('ssh-rsa', Buffer.of(1, 0, 2), modulus(3072)), /even/],
    ['an RSA exponent of 3', line('ssh-rsa', Buffer.of(3), modulus(3072)), /65537/],
    ['an RSA exponent of 1', line('ssh-rsa', Buffer.of(1), modulus(3072)), /65537/],
    ['an RSA exponent of 72 bits', line('ssh-rsa', modulus(72), modulus(3072)), /2\^64/],
    ['an even RSA modulus', line('ssh-rsa', E65537, modulus(3072, 0)), /even/],
    ['a negative RSA modulus', line('ssh-rsa', E65537, modulus(3072).subarray(1)), /negative/],
    [
      'an RSA modulus with needless zeros',
      line('ssh-rsa', E65537, Buffer.concat([Buffer.alloc(200), modulus(3072)])),
      /leading zeros/,
    ],
    ['bytes after the key', line('ssh-ed25519', edPoint(), ''), /after its end/],
    [
      'a security key without its application',
      line('sk-ssh-ed25519@openssh.com', edPoint()),
      /middle/,
    ],
    ['an empty application', line('sk-ssh-ed25519@openssh.com', edPoint(), ''), /application/],
    [
      'a line break in the application',
      line('sk-ssh-ed25519@openssh.com', edPoint(), 'a\nb'),
      /application/,
    ],
  ])('%s', (_, text, message) => {
    expect(refusalOf(text)).toMatch(message);
  });

  it.each(Object.entries(KEYS))(
    'is refused when a %s key is cut short at any byte, or has one byte more',
    (type, text) => {
      const blob = Buffer.from(text.split(' ')[1] ?? '', 'base64');
      for (let length = 1; length < blob.length; length += 1) {
        expect(refusalOf(`${type} ${blob.subarray(0, length).toString('base64')}`)).toMatch(
          /^The key is invalid/,
        );
      }
      const longer = Buffer.concat([blob, Buffer.of(0)]);
      expect(refusalOf(`${type} ${longer.toString('base64')}`)).toMatch(/after its end/);
    },
  );
});

/** Returns the detail of the refusal; any error except the documented one fails the test. */
function refusalOf(text: string): string {
  try {
    parseSshPublicKey(text);
  } catch (error) {
    if (error instanceof SshKeyRefusal) return error.message;
    throw error;
  }
  throw new Error('the key was accepted');
}

function line(type: string, ...fields: (Buffer | string)[]): string {
  return `${type} ${sshStrings([type, ...fields]).toString('base64')}`;
}

function relabelled(from: keyof typeof KEYS, to: string): string {
  return KEYS[from].replace(from, to);
}

function edPoint(): Buffer {
  const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  return Buffer.from(x, 'base64url');
}

function ecPoint(namedCurve: string): Buffer {
  const key = generateKeyPairSync('ec', { namedCurve }).publicKey;
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
}

/**
 * Returns a number of so many bits as the content of an mpint (RFC 4251 §5). It need not be the
 * product of two primes, because no check looks at that.
 */
function modulus(bits: number, lastBit: 0 | 1 = 1): Buffer {
  const value = (1n << BigInt(bits - 1)) | 0b1010n | BigInt(lastBit);
  const digits = value.toString(16);
  const bytes = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
  return (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes;
}
