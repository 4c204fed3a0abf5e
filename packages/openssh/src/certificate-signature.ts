import { type KeyObject, createPublicKey, verify } from 'node:crypto';
import type { SshCertificate } from './certificate.js';
import { SshFormatError, SshReader } from './wire.js';

/**
 * Returns true if the signature of a certificate is by the authority's key that the certificate
 * names. The caller must check that it trusts that key.
 *
 * @throws SshFormatError for an authority whose key is neither Ed25519 nor P-256, or a signature of
 *   another type; an error of node:crypto for a key that is no point of its curve
 */
export function isSignedByItsAuthority({ authority, signed, signature }: SshCertificate): boolean {
  const key = new SshReader(authority);
  const type = key.name();
  const parts = new SshReader(signature);
  if (parts.name() !== type) throw new SshFormatError('its signature is of another type');
  const bytes = parts.string();
  parts.end();
  if (type === 'ssh-ed25519') return verify(null, signed, ed25519Key(key.string()), bytes);
  if (type === 'ecdsa-sha2-nistp256') {
    key.string(); // the curve
    const dsaEncoding = 'ieee-p1363';
    return verify('sha256', signed, { key: p256Key(key.string()), dsaEncoding }, fixedSize(bytes));
  }
  throw new SshFormatError(`its authority has a key of type ${type}`);
}

/** Converts the bytes of an Ed25519 public key (RFC 8709 §4) to a key of Node. */
function ed25519Key(point: Buffer): KeyObject {
  const x = point.toString('base64url');
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
}

/** Converts an uncompressed point of P-256 (RFC 5656 §3.1) to a key of Node. */
function p256Key(point: Buffer): KeyObject {
  const [x, y] = [point.subarray(1, 33), point.subarray(33)];
  const jwk = { x: x.toString('base64url'), y: y.toString('base64url') };
  return createPublicKey({ key: { kty: 'EC', crv: 'P-256', ...jwk }, format: 'jwk' });
}

/**
 * Converts an ECDSA signature (RFC 5656 §3.1.2) to its two integers with 32 bytes each, as Node
 * expects it.
 */
function fixedSize(signature: Buffer): Buffer {
  const integers = new SshReader(signature);
  const pair = [integers.mpint(), integers.mpint()];
  integers.end();
  if (pair.some(({ length }) => length > 32)) throw new SshFormatError('its signature is too long');
  return Buffer.concat(pair.map((part) => Buffer.concat([Buffer.alloc(32 - part.length), part])));
}
