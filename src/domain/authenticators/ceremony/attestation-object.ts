import { Refusal } from '../refusal.js';
import { readCanonicalCbor } from './canonical-cbor.js';

/**
 * Checks the frame of an attestation object (WebAuthn §6.5.4): one canonical CBOR map of exactly `fmt`, `attStmt` and
 * `authData`.
 *
 * @returns the raw authenticator data in it
 * @throws Refusal
 */
export function readAuthenticatorData(attestationObject: Buffer): Buffer {
  const [map, ...rest] = readCanonicalCbor(attestationObject);
  if (rest.length > 0) throw new Refusal('The attestation object has trailing bytes.');
  const authData: unknown = map instanceof Map ? map.get('authData') : undefined;
  const isWhole =
    map instanceof Map &&
    map.size === 3 &&
    typeof map.get('fmt') === 'string' &&
    map.get('attStmt') instanceof Map &&
    authData instanceof Uint8Array;
  if (!isWhole)
    throw new Refusal('The attestation object is not made of fmt, attStmt and authData.');
  return Buffer.from(authData);
}
