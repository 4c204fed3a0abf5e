import { hash, sign, type KeyObject } from 'node:crypto';
import { Encoder } from 'cbor-x';

const cbor = new Encoder({
  mapsAsObjects: false,
  useRecords: false,
  tagUint8Array: false,
  variableMapSize: true,
});

/** The bits of an authenticator's flags (WebAuthn §6.1). */
export const FLAG = { userPresent: 0x01, userVerified: 0x04, credential: 0x40 } as const;

/** The attestation statement formats of the software key. */
export type SimulatedFormat = 'packed' | 'fido-u2f';

/** The new credential that authenticator data describe. */
export interface NewCredential {
  /** The AAGUID, which names the model of the key, 16 bytes. */
  readonly aaguid: Buffer;
  readonly credentialId: Buffer;
  readonly publicKey: KeyObject;
}

/**
 * Encodes CBOR by the rules of CTAP2: definite lengths and shortest forms. A `Map` keeps its order.
 */
export function encodeCbor(value: unknown): Buffer {
  return cbor.encode(value);
}

/**
 * Returns the client data, which a browser sends together with the key's answer (WebAuthn §5.8.1).
 * The challenge is in base64url.
 */
export function clientDataJSON(
  type: 'webauthn.create' | 'webauthn.get',
  challenge: string,
  origin: string,
): Buffer {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
}

/**
 * Returns the authenticator data, which the key signs (WebAuthn §6.1). If there is a new
 * credential, the data contain it, and the flag `credential` is set.
 */
export function authenticatorData(
  rpId: string,
  flags: number,
  signCount: number,
  credential?: NewCredential,
): Buffer {
  const fixed = Buffer.alloc(37);
  hash('sha256', rpId, 'buffer').copy(fixed);
  fixed.writeUInt8(flags | (credential ? FLAG.credential : 0), 32);
  fixed.writeUInt32BE(signCount, 33);
  if (!credential) return fixed;
  const { aaguid, credentialId, publicKey } = credential;
  const length = Buffer.alloc(2);
  length.writeUInt16BE(credentialId.length);
  return Buffer.concat([fixed, aaguid, length, credentialId, encodeCbor(coseKey(publicKey))]);
}

/**
 * Returns a P-256 public key for ES256 as a COSE_Key (RFC 9053 §7.1.1), in CTAP2's canonical order.
 */
export function coseKey(publicKey: KeyObject): Map<number, number | Buffer> {
  const { x, y } = coordinates(publicKey);
  return new Map<number, number | Buffer>([
    [1, 2],
    [3, -7],
    [-1, 1],
    [-2, x],
    [-3, y],
  ]);
}

/**
 * Signs an attestation statement (WebAuthn §8.2, §8.6) over the authenticator data and the client
 * data.
 */
export function attestationStatement(
  format: SimulatedFormat,
  attestationKey: KeyObject,
  x5c: readonly Buffer[],
  authData: Buffer,
  clientData: Buffer,
  credential: NewCredential,
): Map<string, unknown> {
  const clientDataHash = hash('sha256', clientData, 'buffer');
  if (format === 'packed') {
    const sig = sign('sha256', Buffer.concat([authData, clientDataHash]), attestationKey);
    return new Map<string, unknown>([
      ['alg', -7],
      ['sig', sig],
      ['x5c', x5c],
    ]);
  }
  const { x, y } = coordinates(credential.publicKey);
  const rpIdHash = authData.subarray(0, 32);
  const signed = [
    Buffer.of(0),
    rpIdHash,
    clientDataHash,
    credential.credentialId,
    Buffer.of(4),
    x,
    y,
  ];
  return new Map<string, unknown>([
    ['sig', sign('sha256', Buffer.concat(signed), attestationKey)],
    ['x5c', x5c],
  ]);
}

/**
 * Returns an attestation object (WebAuthn §6.5.4): the CBOR of the format, the attestation
 * statement and the authenticator data.
 */
export function attestationObject(
  format: string,
  statement: Map<string, unknown>,
  authData: Buffer,
): Buffer {
  return encodeCbor(
    new Map<string, unknown>([
      ['fmt', format],
      ['attStmt', statement],
      ['authData', authData],
    ]),
  );
}

/**
 * Returns the signature of an assertion (WebAuthn §6.3.3), over the authenticator data and the hash
 * of the client data.
 */
export function assertionSignature(key: KeyObject, authData: Buffer, clientData: Buffer): Buffer {
  return sign('sha256', Buffer.concat([authData, hash('sha256', clientData, 'buffer')]), key);
}

function coordinates(publicKey: KeyObject): { x: Buffer; y: Buffer } {
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  return { x: Buffer.from(x, 'base64url'), y: Buffer.from(y, 'base64url') };
}
