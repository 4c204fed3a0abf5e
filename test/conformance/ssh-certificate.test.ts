import { execFileSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { localSigningKey } from '#domain/ssh/authority/signing-key.js';
import {
  readPrivateKey,
  writePrivateKey,
  parseSshPublicKey,
  sshFingerprint,
  SshReader,
} from '@svc/openssh';
import { requires } from '../support/programs.js';
import {
  blobOf,
  casesOf,
  readCertificateVectors,
  signVector,
} from '../support/ssh-certificate-vectors.js';

const vectors = readCertificateVectors<{ readonly seed: string }>('certificates.json');
const cases = casesOf(vectors);
const privateKey = createPrivateKey({
  key: {
    kty: 'OKP',
    crv: 'Ed25519',
    d: Buffer.from(vectors.authority.seed, 'hex').toString('base64url'),
    x: blobOf(vectors.authority.publicKey).subarray(-32).toString('base64url'),
  },
  format: 'jwk',
});
const authority = localSigningKey(privateKey);

describe('OpenSSH PROTOCOL.certkeys', () => {
  it('covers every accepted key type', () => {
    expect(cases.map(([type]) => type)).toEqual([
      'ssh-ed25519',
      'ecdsa-sha2-nistp256',
      'ecdsa-sha2-nistp384',
      'ecdsa-sha2-nistp521',
      'ssh-rsa',
      'sk-ssh-ed25519@openssh.com',
      'sk-ecdsa-sha2-nistp256@openssh.com',
    ]);
  });

  it.each(cases)('creates the same bytes as ssh-keygen for a key of type %s', async (_, vector) => {
    const theirs = new SshReader(blobOf(vector.certificate));
    theirs.name();
    expect(await signVector(vectors, vector, theirs.string(), authority)).toBe(vector.certificate);
  });
});

requires('ssh-keygen').describe('ssh-keygen', () => {
  it.each(cases)(
    '-L reads every field of a certificate on a key of type %s',
    async (type, vector) => {
      const certificate = await signVector(vectors, vector, Buffer.alloc(32, 7), authority);
      const printed = keygen(['-L', '-f', '-'], certificate).split('\n');
      const key = sshFingerprint(blobOf(vector.publicKey));
      const ca = sshFingerprint(authority.publicBlob);
      const name = type.replace(/(@openssh\.com)?$/, '-cert-v01@openssh.com');
      expect(printed.map((line) => line.trim())).toEqual([
        '(stdin):1:',
        `Type: ${name} user certificate`,
        `Public key: ${shortName(type)}-CERT ${key}`,
        `Signing CA: ED25519 ${ca} (using ssh-ed25519)`,
        `Key ID: "${vectors.keyId}"`,
        `Serial: ${vector.serial}`,
        'Valid: from 2025-11-21T00:00:00 to 2025-11-21T08:00:00',
        'Principals:',
        ...vector.principals,
        'Critical Options: (none)',
        'Extensions:',
        'permit-X11-forwarding',
        'permit-agent-forwarding',
        'permit-port-forwarding',
        'permit-pty',
        'permit-user-rc',
        '',
      ]);
    },
  );

  it.each(cases)(
    '-l prints the fingerprint that the service computes for a key of type %s',
    (_, vector) => {
      const { fingerprint } = parseSshPublicKey(vector.publicKey);
      expect(keygen(['-l', '-f', '-'], vector.publicKey).split(' ')[1]).toBe(fingerprint);
    },
  );

  it('reads the private key file of the service, and the service reads its own', () => {
    const text = writePrivateKey(privateKey, 'ssh-ca@svc.example.com');
    expect(readPrivateKey(text).equals(privateKey)).toBe(true);
    const folder = mkdtempSync(join(tmpdir(), 'svc-ca-key-'));
    try {
      writeFileSync(join(folder, 'ca'), text, { mode: 0o600 });
      expect(keygen(['-y', '-f', join(folder, 'ca')], '').trim()).toBe(
        `${vectors.authority.publicKey} ssh-ca@svc.example.com`,
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

function keygen(args: readonly string[], input: string): string {
  const env = { ...process.env, TZ: 'UTC' };
  return execFileSync('ssh-keygen', args, { input, env, encoding: 'utf8' });
}

/** Returns the abbreviation of a key type by ssh-keygen. */
function shortName(type: string): string {
  const family = type.includes('ecdsa') ? 'ECDSA' : type.includes('rsa') ? 'RSA' : 'ED25519';
  return type.startsWith('sk-') ? `${family}-SK` : family;
}
