import { readFileSync } from 'node:fs';
import { parseSshPublicKey, type SigningAuthority, signUserCertificate } from '@svc/openssh';

/** A certificate that `ssh-keygen -s` made, and the values that it must contain. */
export interface CertificateVector {
  readonly publicKey: string;
  readonly principals: readonly string[];
  readonly serial: string;
  readonly certificate: string;
}

/**
 * Certificates that one authority signed. The script make.mjs in the folder of the vectors made
 * them.
 */
export interface CertificateVectors<Authority> {
  readonly authority: Authority & { readonly publicKey: string };
  readonly keyId: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly certificates: readonly CertificateVector[];
}

/** Reads a file of `test/vectors/ssh`. */
export function readCertificateVectors<Authority>(name: string): CertificateVectors<Authority> {
  const file = new URL(`../vectors/ssh/${name}`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as CertificateVectors<Authority>;
}

/** Returns the vectors for `it.each`, each with the type of its key as the title. */
export function casesOf({
  certificates,
}: Pick<CertificateVectors<object>, 'certificates'>): [string, CertificateVector][] {
  return certificates.map((vector) => [vector.publicKey.split(' ')[0] ?? '', vector]);
}

/**
 * Signs a certificate by the code of the service, with the values of a vector. A test compares it
 * with the certificate that ssh-keygen made.
 */
export function signVector(
  vectors: Omit<CertificateVectors<object>, 'certificates' | 'authority'>,
  vector: CertificateVector,
  nonce: Buffer,
  authority: SigningAuthority,
): Promise<string> {
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

/**
 * Returns the binary key or certificate in a line of OpenSSH, which has it in base64 as its second
 * word.
 */
export function blobOf(line: string): Buffer {
  return Buffer.from(line.split(' ')[1] ?? '', 'base64');
}
