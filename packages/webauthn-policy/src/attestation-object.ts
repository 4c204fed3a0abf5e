import { Refusal } from './refusal.js';
import { readCanonicalCbor } from './canonical-cbor.js';

/**
 * The parts of an attestation object, by which a key proves its model at the enrollment (WebAuthn
 * §6.5.4).
 */
export interface AttestationObject {
  /** The name of the attestation format. */
  readonly format: string;
  /** The members of the statement, not verified. */
  readonly statement: ReadonlyMap<unknown, unknown>;
  /** The bytes of the authenticator data, not parsed. */
  readonly authenticatorData: Buffer;
}

/**
 * Parses an attestation object (WebAuthn §6.5.4). It must be one CBOR map that {@link
 * readCanonicalCbor} accepts, with exactly `fmt`, `attStmt` and `authData`.
 *
 * @throws Refusal for any other bytes
 */
export function readAttestationObject(attestationObject: Buffer): AttestationObject {
  const [map, ...rest] = readCanonicalCbor(attestationObject);
  if (rest.length > 0) throw new Refusal('The attestation object has trailing bytes.');
  const authData: unknown = map instanceof Map ? map.get('authData') : undefined;
  const format: unknown = map instanceof Map ? map.get('fmt') : undefined;
  const statement: unknown = map instanceof Map ? map.get('attStmt') : undefined;
  const isWhole =
    map instanceof Map &&
    map.size === 3 &&
    typeof format === 'string' &&
    statement instanceof Map &&
    authData instanceof Uint8Array;
  if (!isWhole)
    throw new Refusal('The attestation object is not made of fmt, attStmt and authData.');
  return { format, statement, authenticatorData: Buffer.from(authData) };
}
