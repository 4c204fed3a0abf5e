import { type KeyObject, sign } from 'node:crypto';
import { publicKeyBlob, sshFingerprint, type SigningAuthority } from '@svc/openssh';
import type { Signer } from '#platform/crypto/signer.js';

/** A public key of the authority. */
export interface AuthorityKey {
  /** The public key in the SSH wire encoding. */
  readonly publicBlob: Buffer;
  /** The fingerprint: `SHA256:…`, as `ssh-keygen -l` prints it. */
  readonly fingerprint: string;
}

/** A key of the authority that signs certificates. */
export type SigningKey = AuthorityKey & SigningAuthority;

/** Returns a public key together with its fingerprint. */
export function authorityKey(publicBlob: Buffer): AuthorityKey {
  return { publicBlob, fingerprint: sshFingerprint(publicBlob) };
}

/**
 * Signs with a private key of this process. A signature of Ed25519 takes less time than a change of
 * threads, so it is made at once.
 */
export function localSigningKey(privateKey: KeyObject): SigningKey {
  const signNow =
    privateKey.asymmetricKeyType === 'ec'
      ? (message: Buffer) => sign('sha256', message, { key: privateKey, dsaEncoding: 'ieee-p1363' })
      : (message: Buffer) => sign(null, message, privateKey);
  return {
    ...authorityKey(publicKeyBlob(privateKey)),
    sign: async (message) => signNow(message),
  };
}

/** Returns a signing key whose private half stays in AWS KMS. */
export function remoteSigningKey(signer: Signer): SigningKey {
  return {
    ...authorityKey(publicKeyBlob(signer.publicKey)),
    sign: (message) => signer.sign(message),
  };
}
