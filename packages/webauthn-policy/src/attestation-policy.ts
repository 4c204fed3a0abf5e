import { verify } from 'node:crypto';
import { verifyPath } from './certificate-path.js';
import { parseCertificate, type ParsedCertificate } from './certificate.js';
import { checkLeaf, checkPackedSubject, readAaguid } from './leaf-certificate.js';
import { Refusal } from './refusal.js';
import type { TrustAnchor } from './trust-anchor.js';

/** The accepted attestation statement formats, case-sensitive (WebAuthn §8.2 and §8.6). */
export const ATTESTATION_FORMATS = ['packed', 'fido-u2f'] as const;
export type AttestationFormat = (typeof ATTESTATION_FORMATS)[number];

/**
 * The COSE identifier of ES256: ECDSA on P-256 with SHA-256, the only algorithm that is offered and
 * accepted.
 */
export const ES256 = -7;

/** An attestation statement that was decoded, but not yet verified. */
export interface AttestationStatement {
  readonly format: AttestationFormat;
  readonly signature: Uint8Array;
  /**
   * The certificates of the statement: the leaf first, then its issuer, and so on, without the
   * root.
   */
  readonly x5c: readonly Uint8Array[];
}

/** The new credential that an attestation statement attests. */
export interface AttestedCredential {
  readonly authenticatorData: Uint8Array;
  readonly clientDataHash: Uint8Array;
  readonly rpIdHash: Uint8Array;
  readonly aaguid: Uint8Array;
  readonly credentialId: Uint8Array;
  /**
   * The coordinates of the P-256 public key, 32 bytes each; undefined for a key on another curve,
   * which the format `fido-u2f` does not allow.
   */
  readonly publicKey: { readonly x: Uint8Array; readonly y: Uint8Array } | undefined;
}

/** The trusted roots (trust anchors), and the time for which the decision is made. */
export interface AttestationTrust {
  readonly anchors: readonly TrustAnchor[];
  readonly now: Date;
}

/**
 * Verifies that an attestation statement proves that a credential is in hardware of the vendor
 * whose roots are trusted.
 *
 * @returns the AAGUID (the UUID of the model) in the certificate, and never that in the
 *   authenticator data; null if the certificate has none
 * @throws Refusal for every other statement, with the first reason found
 */
export function verifyAttestation(
  statement: AttestationStatement,
  credential: AttestedCredential,
  trust: AttestationTrust,
): string | null {
  const chain = statement.x5c.map(parseCertificate);
  const [leaf] = chain;
  if (!leaf) throw new Refusal('Self-attestation is not accepted: x5c is missing.');
  if (statement.format === 'fido-u2f' && chain.length !== 1) {
    throw new Refusal('A fido-u2f attestation carries exactly one certificate.');
  }
  verifyPath(chain, trust.anchors, trust.now);
  checkLeaf(leaf);
  if (statement.format === 'packed') checkPackedSubject(leaf);
  checkStatementSignature(statement, credential, leaf);
  return modelOf(statement.format, leaf, credential.aaguid);
}

function checkStatementSignature(
  { format, signature }: AttestationStatement,
  credential: AttestedCredential,
  leaf: ParsedCertificate,
): void {
  const signed = format === 'packed' ? packedSignedData(credential) : u2fSignedData(credential);
  if (!verify('sha256', signed, leaf.x509.publicKey, signature)) {
    throw new Refusal('The attestation signature does not verify.');
  }
}

/**
 * Returns the bytes that a `packed` statement signs (WebAuthn §8.2): authenticatorData ‖
 * clientDataHash.
 */
function packedSignedData({ authenticatorData, clientDataHash }: AttestedCredential): Buffer {
  return Buffer.concat([authenticatorData, clientDataHash]);
}

/**
 * Returns the bytes that a `fido-u2f` statement signs (WebAuthn §8.6): 0x00 ‖ rpIdHash ‖
 * clientDataHash ‖ credentialId ‖ the public key as an uncompressed point.
 */
function u2fSignedData(credential: AttestedCredential): Buffer {
  const { rpIdHash, clientDataHash, credentialId, publicKey } = credential;
  if (!publicKey) throw new Refusal('A U2F key makes P-256 keys only.');
  return Buffer.concat([
    Buffer.of(0x00),
    rpIdHash,
    clientDataHash,
    credentialId,
    Buffer.of(0x04),
    publicKey.x,
    publicKey.y,
  ]);
}

/**
 * Returns the AAGUID, which names the model of the key, from the certificate; null if there is
 * none. The AAGUID in the authenticator data must be the same.
 */
function modelOf(
  format: AttestationFormat,
  leaf: ParsedCertificate,
  claimed: Uint8Array,
): string | null {
  const certified = readAaguid(leaf);
  if (certified === null) return null;
  // A U2F statement carries no AAGUID, so zeros mean "no AAGUID" there. In CTAP2, zeros contradict
  // an AAGUID in the certificate.
  const carriesNone = format === 'fido-u2f' && claimed.every((byte) => byte === 0);
  if (!carriesNone && !certified.equals(claimed)) {
    throw new Refusal('The AAGUID of the certificate and that of the authenticator data disagree.');
  }
  return certified.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
