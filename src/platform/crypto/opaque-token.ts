import { hash, timingSafeEqual } from 'node:crypto';
import { systemRandom } from '#platform/clock/random.js';

/**
 * A bearer secret, and the hash of it. The secret goes to its owner, and only the hash is stored.
 */
export interface OpaqueToken {
  /** 256 random bits, base64url, behind a prefix if the kind of the token has one. */
  readonly token: string;
  /** The SHA-256 of the token, by which the database finds it. */
  readonly hash: Buffer;
}

/**
 * Makes a new bearer secret of 256 random bits.
 *
 * @param prefix a text in front of the random bits, by which a secret scanner recognizes the kind
 *   of the secret. The prefix is a part of the text that is hashed
 */
export function mintOpaqueToken(prefix = ''): OpaqueToken {
  const token = prefix + systemRandom.token();
  return { token, hash: hashOpaqueToken(token) };
}

/**
 * Returns the hash under which a bearer secret is stored. SHA-256 is enough. A slow hash is only
 * needed for passwords, which can be guessed; a random secret cannot.
 */
export function hashOpaqueToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/**
 * Returns true if two secrets are equal. It compares their hashes, so that the duration does not
 * show how many characters of a guess are right.
 */
export function equalInConstantTime(one: string, other: string): boolean {
  return timingSafeEqual(hashOpaqueToken(one), hashOpaqueToken(other));
}
