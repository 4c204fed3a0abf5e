import { type KeyObject, sign } from 'node:crypto';
import { publicKeyBlob, sshFingerprint, type SigningAuthority } from '@svc/openssh';
import type { Signer } from '#platform/crypto/signer.js';

/** A public key of the SSH certificate authority. */
export interface AuthorityKey {
  /** The public key in the SSH wire encoding. */
  readonly publicBlob: Buffer;
  /** The fingerprint: `SHA256:…`, as `ssh-keygen -l` prints it. */
  readonly fingerprint: string;
}

/** A key of the SSH certificate authority that signs certificates. */
export type SigningKey = AuthorityKey & SigningAuthority;

/** Returns a public key together with its fingerprint. */
export function authorityKey(publicBlob: Buffer): AuthorityKey {
  return { publicBlob, fingerprint: sshFingerprint(publicBlob) };
}

/**
 * Returns a signing key whose private half is in this process. An Ed25519 signature takes less time
 * than a switch to a worker thread, so the calling thread makes it.
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
