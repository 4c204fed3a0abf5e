import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { localSigningKey } from '#domain/ssh/authority/signing-key.js';
import { readPrivateKey, sshFingerprint, SshReader } from '@svc/openssh';
import { requires } from '../support/programs.js';
import {
  blobOf,
  casesOf,
  readCertificateVectors,
  signVector,
} from '../support/ssh-certificate-vectors.js';

const vectors = readCertificateVectors<{ readonly privateKey: string }>('certificates-p256.json');
const cases = casesOf(vectors);
const authority = localSigningKey(readPrivateKey(vectors.authority.privateKey));

describe('a P-256 authority (RFC 5656), against ssh-keygen -s', () => {
  it('has the public key of its key file', () => {
    expect(authority.publicBlob.equals(blobOf(vectors.authority.publicKey))).toBe(true);
  });

  it.each(cases)('creates the same bytes for a key of type %s', async (_, vector) => {
    const theirs = blobOf(vector.certificate);
    const fields = new SshReader(theirs);
    fields.name();
    const nonce = fields.string();
    const sign = async () => rawSignature(theirs);
    const ours = await signVector(vectors, vector, nonce, { ...authority, sign });
    expect(ours).toBe(vector.certificate);
  });
});

requires('ssh-keygen').describe('ssh-keygen and a P-256 authority', () => {
  it.each(cases)('-L verifies a certificate on a key of type %s', async (_, vector) => {
    const certificate = await signVector(vectors, vector, Buffer.alloc(32, 7), authority);
    const printed = execFileSync('ssh-keygen', ['-L', '-f', '-'], {
      input: certificate,
      encoding: 'utf8',
    });
    const fingerprint = sshFingerprint(authority.publicBlob);
    expect(printed).toContain(`Signing CA: ECDSA ${fingerprint} (using ecdsa-sha2-nistp256)`);
    expect(printed).toContain(`Serial: ${vector.serial}`);
  });

  it('-L verifies each of 300 signatures, of which some have short numbers', async () => {
    const [vector] = vectors.certificates;
    if (!vector) throw new Error('no vector');
    const lengths = new Set<number>();
    const certificates: string[] = [];
    for (let round = 0; round < 300; round += 1) {
      const certificate = await signVector(
        vectors,
        vector,
        Buffer.alloc(32, round % 256),
        authority,
      );
      lengths.add(blobOf(certificate).length);
      certificates.push(certificate);
    }
    // r and s have 33 bytes if their first bit is set, else 32 or seldom fewer. So the lengths
    // differ.
    expect(lengths.size).toBeGreaterThan(2);
    const printed = execFileSync('ssh-keygen', ['-L', '-f', '-'], {
      input: certificates.join('\n'),
      encoding: 'utf8',
    });
    expect(printed.match(/Signing CA: ECDSA/g)).toHaveLength(300);
  });
});

/** Reads r and s of the ECDSA signature at the end of a certificate, as 32 bytes each. */
function rawSignature(certificate: Buffer): Buffer {
  const at = certificate.lastIndexOf('ecdsa-sha2-nistp256') - 4;
  const signature = new SshReader(certificate.subarray(at));
  signature.name();
  const numbers = new SshReader(signature.string());
  signature.end();
  const [r, s] = [numbers.mpint(), numbers.mpint()];
  return Buffer.concat([r, s].flatMap((n) => [Buffer.alloc(32 - n.length), n]));
}
