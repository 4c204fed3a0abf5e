import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isValidAt, readCertificate } from '../src/ssh/certificate.js';
import { requires } from '../../../test/support/programs.js';

requires('ssh-keygen').describe('reading a certificate that ssh-keygen made', () => {
  let folder: string;
  const keygen = (...args: string[]) => execFileSync('ssh-keygen', args, { cwd: folder });
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-certificates-'));
    keygen('-q', '-t', 'ed25519', '-N', '', '-f', 'ca');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const certify = (type: string, validity: string) => {
    keygen('-q', '-t', type, '-N', '', '-f', type);
    keygen(
      '-q',
      '-s',
      'ca',
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
    expect(readCertificate(certify(type, '20300101000000Z:20300102030405Z'))).toEqual({
      serial: '42',
      keyId: 'ada@acme',
      principals: ['ada', 'root'],
      validAfter: Date.UTC(2030, 0, 1),
      validBefore: Date.UTC(2030, 0, 2, 3, 4, 5),
    });
    rmSync(join(folder, type));
  });

  it('reads a certificate without end, and refuses one that is cut off at any place', () => {
    const line = certify('ed25519', 'always:forever');
    expect(readCertificate(line)).toMatchObject({ validAfter: 0, validBefore: Infinity });
    const [type, encoded = ''] = line.split(' ');
    const bytes = Buffer.from(encoded, 'base64');
    const end = bytes.indexOf('ada,root') + 30;
    for (let length = 0; length < Math.min(end, bytes.length); length += 7) {
      const cut = `${type} ${bytes.subarray(0, length).toString('base64')}`;
      expect([undefined, 'ada@acme']).toContain(readCertificate(cut)?.keyId);
    }
    expect(readCertificate(`${type} ${bytes.subarray(0, 60).toString('base64')}`)).toBeUndefined();
    rmSync(join(folder, 'ed25519'));
  });
});

describe('a certificate', () => {
  it.each(['', 'garbage', 'ssh-ed25519 AAAA', 'ssh-ed25519-cert-v01@openssh.com /////w=='])(
    'is not read out of %j',
    (line) => {
      expect(readCertificate(line)).toBeUndefined();
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
