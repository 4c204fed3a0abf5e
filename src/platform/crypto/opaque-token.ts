import { hash } from 'node:crypto';
import { systemRandom } from '#platform/clock/random.js';

/** A bearer secret as it is handed out, and the only form of it that is kept. */
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

/** What is stored of a bearer secret. Random secrets need no slow hash: there is nothing to guess. */
export function hashOpaqueToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
