import { timingSafeEqual } from 'node:crypto';
import { hashOpaqueToken } from './opaque-token.js';

/** Whether two secrets are equal, in a time that depends on neither, not even on their lengths: hashes are compared. */
export function equalInConstantTime(one: string, other: string): boolean {
  return timingSafeEqual(hashOpaqueToken(one), hashOpaqueToken(other));
}
