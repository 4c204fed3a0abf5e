import { execFileSync } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseSshPublicKey } from '../src/public-key.js';
import { isSignatureOf, readFileSignature } from '../src/signature.js';
import { SshFormatError, sshString, sshStrings, uint32 } from '../src/wire.js';
import { requires } from '../../../test/support/programs.js';

const CONTENT = Buffer.from('0'.repeat(64) + '  svc-0.14.0.mjs\n');

/** Converts the bytes of a signature to the text form that `ssh-keygen -Y sign` writes. */
const armored = (bytes: Buffer) =>
  `-----BEGIN SSH SIGNATURE-----\n${bytes.toString('base64').replaceAll(/.{70}/g, '$&\n')}\n-----END SSH SIGNATURE-----\n`;

requires('ssh-keygen').describe('a signature of ssh-keygen', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-file-signatures-'));
    writeFileSync(join(folder, 'list'), CONTENT);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const keygen = (args: readonly string[], input = '') =>
    execFileSync('ssh-keygen', args, { cwd: folder, input, stdio: ['pipe', 'pipe', 'ignore'] });
  function signed(type: string, ...options: string[]) {
    rmSync(join(folder, type), { force: true });
    keygen(['-q', '-t', type, '-N', '', '-f', type]);
    rmSync(join(folder, 'list.sig'), { force: true });
    keygen(['-Y', 'sign', '-q', '-n', 'file', '-f', type, ...options, 'list']);
    return {
      text: readFileSync(join(folder, 'list.sig'), 'utf8'),
      key: parseSshPublicKey(readFileSync(join(folder, `${type}.pub`), 'utf8')).blob,
    };
  }

  it.each([
    ['ed25519', []],
    ['ed25519', ['-O', 'hashalg=sha256']],
    ['ecdsa', []],
  ])('of the type %s is of its file, its namespace and its key alone %j', (type, options) => {
    const { text, key } = signed(type, ...options);
    const read = readFileSignature(text);
    expect(read.namespace).toBe('file');
    expect(read.publicBlob).toEqual(key);
    expect(isSignatureOf(read, CONTENT)).toBe(true);
    expect(isSignatureOf(read, Buffer.concat([CONTENT, Buffer.from('\n')]))).toBe(false);
    expect(isSignatureOf({ ...read, namespace: 'git' }, CONTENT)).toBe(false);
    expect(isSignatureOf({ ...read, reserved: Buffer.of(0) }, CONTENT)).toBe(false);
  });

  it('by an RSA key is refused, and so is every other text', () => {
    const { text } = signed('rsa');
    expect(() => isSignatureOf(readFileSignature(text), CONTENT)).toThrow(SshFormatError);
    const good = signed('ed25519').text;
    const others = ['', 'hello', good.slice(0, 80), `${good}x`, good.replace('SSH', 'PGP')];
    const cut = armored(Buffer.from(good.split('\n').slice(1, -2).join(''), 'base64').subarray(1));
    for (const other of [...others, cut]) {
      expect(() => readFileSignature(other)).toThrow(SshFormatError);
    }
  });

  it('by a security key counts with a touch alone, which ssh-keygen does not demand', () => {
    for (const curve of ['ed25519', 'p256'] as const) {
      const touched = bySecurityKey(curve, 0x01);
      const untouched = bySecurityKey(curve, 0x00);
      expect(isSignatureOf(readFileSignature(touched.text), CONTENT)).toBe(true);
      expect(isSignatureOf(readFileSignature(untouched.text), CONTENT)).toBe(false);
      expect(isSignatureOf(readFileSignature(touched.text), Buffer.from('another'))).toBe(false);
      expect([verify(touched), verify(untouched)]).toEqual([true, true]);
    }
  });

  function verify({ text, line }: { readonly text: string; readonly line: string }): boolean {
    writeFileSync(join(folder, 'signers'), `release@x ${line}\n`);
    writeFileSync(join(folder, 'made.sig'), text);
    try {
      const args = '-Y verify -f signers -I release@x -n file -s made.sig'.split(' ');
      return keygen(args, CONTENT.toString()).includes('Good');
    } catch {
      return false;
    }
  }
});

/** Signs as a security key does (PROTOCOL.u2f): with the application, the flags and a counter. */
function bySecurityKey(curve: 'ed25519' | 'p256', flags: number) {
  const isEdwards = curve === 'ed25519';
  const pair = isEdwards
    ? generateKeyPairSync('ed25519')
    : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = pair.publicKey.export({ format: 'jwk' });
  const [left, right] = [x, y].map((part) => Buffer.from(part, 'base64url'));
  const type = isEdwards ? 'sk-ssh-ed25519@openssh.com' : 'sk-ecdsa-sha2-nistp256@openssh.com';
  const point = isEdwards
    ? (left ?? '')
    : Buffer.concat([Buffer.of(4), left ?? '', right ?? ''].map((part) => Buffer.from(part)));
  const key = sshStrings([type, ...(isEdwards ? [] : ['nistp256']), point, 'ssh:']);
  const digest = createHash('sha512').update(CONTENT).digest();
  const message = Buffer.concat([
    Buffer.from('SSHSIG'),
    sshStrings(['file', '', 'sha512', digest]),
  ]);
  const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest();
  const asserted = Buffer.concat([Buffer.of(flags), uint32(7)]);
  const toSign = Buffer.concat([sha256('ssh:'), asserted, sha256(message)]);
  const raw = isEdwards
    ? sign(null, toSign, pair.privateKey)
    : withIntegers(sign('sha256', toSign, { key: pair.privateKey, dsaEncoding: 'ieee-p1363' }));
  const signature = Buffer.concat([sshStrings([type, raw]), asserted]);
  const parts = [
    Buffer.from('SSHSIG'),
    uint32(1),
    sshStrings([key, 'file', '', 'sha512', signature]),
  ];
  return { text: armored(Buffer.concat(parts)), line: `${type} ${key.toString('base64')}` };
}

/** Converts an ECDSA signature of fixed size to the two integers of SSH. */
function withIntegers(fixed: Buffer): Buffer {
  const integer = (bytes: Buffer) => {
    const short = bytes.subarray(bytes.findIndex((byte) => byte !== 0));
    return sshString(short[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), short]) : short);
  };
  return Buffer.concat([integer(fixed.subarray(0, 32)), integer(fixed.subarray(32))]);
}

describe('a text of the form of a signature', () => {
  it.each([
    ['an Ed25519 key of 31 bytes', ['ssh-ed25519', Buffer.alloc(31, 1)], Buffer.alloc(64)],
    [
      'a P-256 point beside its curve',
      ['ecdsa-sha2-nistp256', 'nistp256', Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)])],
      sshStrings([Buffer.of(1), Buffer.of(1)]),
    ],
    [
      'a P-256 point in another form',
      ['ecdsa-sha2-nistp256', 'nistp256', Buffer.concat([Buffer.of(2), Buffer.alloc(64, 1)])],
      sshStrings([Buffer.of(1), Buffer.of(1)]),
    ],
  ])('by %s is refused as malformed', (_, key, bytes) => {
    const [type = ''] = key;
    const read = {
      publicBlob: sshStrings(key),
      namespace: 'file',
      reserved: Buffer.alloc(0),
      hash: 'sha512',
      signature: sshStrings([type, bytes]),
    };
    expect(() => isSignatureOf(read, CONTENT)).toThrow(SshFormatError);
  });

  it('with another version or hash is refused', () => {
    const make = (version: number, hash: string) =>
      armored(
        Buffer.concat([
          Buffer.from('SSHSIG'),
          uint32(version),
          sshStrings(['key', 'file', '', hash, 'signature']),
        ]),
      );
    expect(() => readFileSignature(make(2, 'sha512'))).toThrow('version 1');
    expect(() => readFileSignature(make(1, 'md5'))).toThrow('another kind');
    expect(readFileSignature(make(1, 'sha512')).namespace).toBe('file');
  });
});
