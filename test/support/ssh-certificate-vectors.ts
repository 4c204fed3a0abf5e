import { readFileSync } from 'node:fs';
import { parseSshPublicKey, type SigningAuthority, signUserCertificate } from '@svc/openssh';

/** A certificate that `ssh-keygen -s` made, with the facts that it contains. */
export interface CertificateVector {
  readonly publicKey: string;
  readonly principals: readonly string[];
  readonly serial: string;
  readonly certificate: string;
}

/** The certificates that one authority signed. The file make.mjs beside the vectors made them. */
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

/** Returns the vectors, each named by the type of its key, for `it.each`. */
export function casesOf({
  certificates,
}: Pick<CertificateVectors<object>, 'certificates'>): [string, CertificateVector][] {
  return certificates.map((vector) => [vector.publicKey.split(' ')[0] ?? '', vector]);
}

/**
 * Signs a certificate with the content of a vector by the code of the service, to compare it with
 * that of ssh-keygen.
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

/** Returns the binary key or certificate in a line of OpenSSH: the base64 in its second word. */
export function blobOf(line: string): Buffer {
  return Buffer.from(line.split(' ')[1] ?? '', 'base64');
}
