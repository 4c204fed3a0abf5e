import { execFileSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { localSigningKey } from '#domain/ssh-certificates/authority/signing-key.js';
import { readPrivateKey, writePrivateKey } from '#domain/ssh-certificates/openssh/private-key.js';
import { parseSshPublicKey, sshFingerprint } from '#domain/ssh-certificates/openssh/public-key.js';
import { SshReader } from '#domain/ssh-certificates/openssh/wire.js';
import { signUserCertificate } from '#domain/ssh-certificates/openssh/user-certificate.js';
import { requires } from '../support/programs.js';

interface Vectors {
  readonly authority: { readonly seed: string; readonly publicKey: string };
  readonly keyId: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly certificates: readonly Vector[];
}

interface Vector {
  readonly publicKey: string;
  readonly principals: readonly string[];
  readonly serial: string;
  readonly certificate: string;
}

const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../vectors/ssh/certificates.json', import.meta.url), 'utf8'),
);
const cases = vectors.certificates.map((vector): [string, Vector] => [
  vector.publicKey.split(' ')[0] ?? '',
  vector,
]);
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

function signVector(vector: Vector, nonce: Buffer): Promise<string> {
  return signUserCertificate(
    {
      subject: parseSshPublicKey(vector.publicKey),
      nonce,
      serial: BigInt(vector.serial),
      keyId: vectors.keyId,
      principals: vector.principals,
      validAfter: new Date(vectors.validAfter),
      validBefore: new Date(vectors.validBefore),
    },
    authority,
  );
}

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
    expect(await signVector(vector, theirs.string())).toBe(vector.certificate);
  });
});

requires('ssh-keygen').describe('ssh-keygen', () => {
  it.each(cases)(
    '-L reads every field of a certificate on a key of type %s',
    async (type, vector) => {
      const certificate = await signVector(vector, Buffer.alloc(32, 7));
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

function blobOf(line: string): Buffer {
  return Buffer.from(line.split(' ')[1] ?? '', 'base64');
}
