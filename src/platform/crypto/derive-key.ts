import { hkdfSync } from 'node:crypto';

/**
 * The key of one purpose under a root secret, by HKDF-SHA256 (RFC 5869): what knows one key learns nothing of another.
 *
 * @param length in bytes
 */
export function deriveKey(secret: string, purpose: string, length: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `svc ${purpose}`, length));
}
