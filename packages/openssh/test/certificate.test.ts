import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isValidAt, readCertificate } from '../src/certificate.js';
import { isSignedByItsAuthority } from '../src/signature.js';
import { publicKeyBlob, publicKeyLine } from '../src/private-key.js';
import { parseSshPublicKey } from '../src/public-key.js';
import { signUserCertificate } from '../src/user-certificate.js';
import { SshFormatError } from '../src/wire.js';
import { requires } from '../../../test/support/programs.js';

requires('ssh-keygen').describe('reading a certificate that ssh-keygen made', () => {
  let folder: string;
  const keygen = (...args: string[]) => execFileSync('ssh-keygen', args, { cwd: folder });
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-certificates-'));
    keygen('-q', '-t', 'ed25519', '-N', '', '-f', 'ca');
    keygen('-q', '-t', 'ecdsa', '-b', '256', '-N', '', '-f', 'ca-ecdsa');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const certify = (type: string, validity: string, authority = 'ca') => {
    keygen('-q', '-t', type, '-N', '', '-f', type);
    keygen(
      '-q',
      '-s',
      authority,
      '-I',
      'ada@acme',
      '-n',
      'ada,root',
      '-z',
      '42',
      '-V',
      validity,
      `${type}.pub`,
    );
    return readFileSync(join(folder, `${type}-cert.pub`), 'utf8');
  };

  it.each(['ed25519', 'rsa', 'ecdsa'])('finds its fields behind a key of the type %s', (type) => {
    const certificate = readCertificate(certify(type, '20300101000000Z:20300102030405Z'));
    expect(certificate).toMatchObject({
      serial: 42n,
      isOfUser: true,
      keyId: 'ada@acme',
      principals: ['ada', 'root'],
      validAfter: Date.UTC(2030, 0, 1),
      validBefore: Date.UTC(2030, 0, 2, 3, 4, 5),
      criticalOptions: [],
      extensions: expect.arrayContaining(['permit-pty']),
    });
    const publicKey = readFileSync(join(folder, `${type}.pub`), 'utf8').split(' ')[1];
    expect(certificate.publicKey.toString('base64')).toBe(publicKey);
    expect(isSignedByItsAuthority(certificate)).toBe(true);
    rmSync(join(folder, type));
  });

  it('verifies the signature of an authority with a key on P-256', () => {
    const certificate = readCertificate(certify('ed25519', 'always:forever', 'ca-ecdsa'));
    expect(isSignedByItsAuthority(certificate)).toBe(true);
    const signed = Buffer.from(certificate.signed);
    signed[signed.indexOf('ada@acme')] = 0x65;
    expect(isSignedByItsAuthority({ ...certificate, signed })).toBe(false);
    rmSync(join(folder, 'ed25519'));
  });

  it('reads a certificate without end, and refuses one that is cut off at any place', () => {
    const line = certify('ed25519', 'always:forever');
    expect(readCertificate(line)).toMatchObject({ validAfter: 0, validBefore: Infinity });
    const [type, encoded = ''] = line.split(' ');
    const bytes = Buffer.from(encoded, 'base64');
    for (let length = 0; length < bytes.length; length += 1) {
      const cut = `${type} ${bytes.subarray(0, length).toString('base64')}`;
      expect(() => readCertificate(cut), String(length)).toThrow(SshFormatError);
    }
    const longer = Buffer.concat([bytes, Buffer.of(0)]);
    expect(() => readCertificate(`${type} ${longer.toString('base64')}`)).toThrow('after its end');
    rmSync(join(folder, 'ed25519'));
  });
});

describe('a certificate', () => {
  it.each(['', 'garbage', 'ssh-ed25519 AAAA', 'ssh-ed25519-cert-v01@openssh.com /////w=='])(
    'is not read out of %j',
    (line) => {
      expect(() => readCertificate(line)).toThrow(SshFormatError);
    },
  );

  it('is valid from its first moment to the moment before its last', () => {
    const certificate = { validAfter: 10, validBefore: 20 };
    expect([9, 10, 19, 20].map((now) => isValidAt(certificate, now))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect([14, 15].map((now) => isValidAt(certificate, now, 5))).toEqual([true, false]);
  });
});

describe('the check of a certificate', async () => {
  const authority = generateKeyPairSync('ed25519').privateKey;
  const subject = publicKeyBlob(generateKeyPairSync('ed25519').privateKey);
  const line = await signUserCertificate(
    {
      subject: parseSshPublicKey(publicKeyLine(subject, 'ada')),
      nonce: randomBytes(32),
      serial: 7n,
      keyId: 'ada@example.com@localhost',
      principals: ['ada@example.com', 'ada'],
      validAfter: new Date('2026-01-15T12:00:00Z'),
      validBefore: new Date('2026-01-15T20:00:00Z'),
    },
    {
      publicBlob: publicKeyBlob(authority),
      sign: async (message) => sign(null, message, authority),
    },
  );

  it('reads each field that the authority wrote', () => {
    expect(readCertificate(line)).toMatchObject({
      type: 'ssh-ed25519-cert-v01@openssh.com',
      isOfUser: true,
      publicKey: subject,
      serial: 7n,
      keyId: 'ada@example.com@localhost',
      principals: ['ada@example.com', 'ada'],
      validAfter: Date.UTC(2026, 0, 15, 12),
      validBefore: Date.UTC(2026, 0, 15, 20),
      authority: publicKeyBlob(authority),
    });
  });

  it('detects one changed letter of a principal', () => {
    const [type = '', encoded = ''] = line.split(' ');
    const forged = Buffer.from(encoded, 'base64');
    forged[forged.indexOf('ada@example.com', forged.indexOf('@localhost'))] = 0x65;
    const read = readCertificate(`${type} ${forged.toString('base64')}`);
    expect([line, line.trim()].map((one) => isSignedByItsAuthority(readCertificate(one)))).toEqual([
      true,
      true,
    ]);
    expect(isSignedByItsAuthority(read)).toBe(false);
  });
});
