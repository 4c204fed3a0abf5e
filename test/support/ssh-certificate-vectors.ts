import { readFileSync } from 'node:fs';
import { parseSshPublicKey, type SigningAuthority, signUserCertificate } from '@svc/openssh';

/** A certificate that `ssh-keygen -s` made. */
export interface CertificateVector {
  readonly publicKey: string;
  readonly principals: readonly string[];
  readonly serial: string;
  readonly certificate: string;
}

/** The certificates of one authority; see make.mjs beside the files. */
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

/** Names each vector by the type of its key, for `it.each`. */
export function casesOf({
  certificates,
}: Pick<CertificateVectors<object>, 'certificates'>): [string, CertificateVector][] {
  return certificates.map((vector) => [vector.publicKey.split(' ')[0] ?? '', vector]);
}

/** Signs the certificate of a vector with our own code. */
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

/** Returns the bytes of a line of OpenSSH. */
export function blobOf(line: string): Buffer {
  return Buffer.from(line.split(' ')[1] ?? '', 'base64');
}
