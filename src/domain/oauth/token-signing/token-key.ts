import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, type JWK } from 'jose';
import { localSigner, type Signer } from '#platform/crypto/signer.js';

/** A key as a JWK (RFC 7517); `kid` is the thumbprint of RFC 7638. */
export type SigningJwk = JWK & { readonly kid: string; readonly alg: string };

/**
 * A key that signs tokens, or one that is only published, so that verifiers still accept tokens
 * that it signed earlier.
 */
export interface TokenKey {
  /** The public part of the key, which is published. */
  readonly jwk: SigningJwk;
  readonly publicKey: KeyObject;
  /** The function that signs; undefined for a key that is only published. */
  readonly signer: Signer | undefined;
  /** The private part of the key; undefined if it is in KMS or does not sign. */
  readonly privateJwk: SigningJwk | undefined;
}

/** Makes a token key from a PEM block. A private key signs; a public key is only published. */
export async function keyOfPem(alg: string, pem: string): Promise<TokenKey> {
  if (!pem.includes('PRIVATE KEY-----')) return publishedKey(alg, createPublicKey(pem));
  const privateKey = createPrivateKey(pem);
  const signer = localSigner(privateKey);
  const key = await publishedKey(alg, signer.publicKey);
  const privateJwk = { ...(await exportJWK(privateKey)), ...key.jwk };
  return { ...key, signer, privateJwk };
}

/**
 * Makes a token key from a signer in a key service (KMS). The private part never enters this
 * process.
 */
export async function keyOfSigner(signer: Signer): Promise<TokenKey> {
  return { ...(await publishedKey(signer.alg, signer.publicKey)), signer };
}

/** Makes a token key that signs nothing and is only published. */
export async function publishedKey(alg: string, publicKey: KeyObject): Promise<TokenKey> {
  const jwk = await exportJWK(publicKey);
  const kid = await calculateJwkThumbprint(jwk);
  const published = { ...jwk, use: 'sig', kid, alg };
  return { jwk: published, publicKey, signer: undefined, privateJwk: undefined };
}
