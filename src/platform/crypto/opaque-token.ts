import { hash, timingSafeEqual } from 'node:crypto';
import { systemRandom } from '#platform/clock/random.js';

/** A bearer secret for its owner, and the hash of the secret. Only the hash is stored. */
export interface OpaqueToken {
  /** 256 random bits, base64url. */
  readonly token: string;
  /** SHA-256 of the token. */
  readonly hash: Buffer;
}

/** Mints a new bearer secret of 256 random bits. */
export function mintOpaqueToken(): OpaqueToken {
  const token = systemRandom.token();
  return { token, hash: hashOpaqueToken(token) };
}

/**
 * Returns the stored form of a bearer secret. A random secret needs no slow hash, since it cannot
 * be guessed.
 */
export function hashOpaqueToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/**
 * Returns true if two secrets are equal. It compares their hashes, in a time that depends on
 * neither their content nor their lengths.
 */
export function equalInConstantTime(one: string, other: string): boolean {
  return timingSafeEqual(hashOpaqueToken(one), hashOpaqueToken(other));
}
