import { X509Certificate } from 'node:crypto';
import { leadsToAuthority } from '../../../../src/features/oidc/protocol/clients/client-certificate-path.js';
import { DER } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { INPUTS, NOW } from '../signed-inputs.js';

const ROOT = new X509Certificate(Buffer.from(INPUTS.clientCertificate.root, 'base64'));
const LEAF = Buffer.from(INPUTS.clientCertificate.leaf, 'base64');
/**
 * The length in bytes of the signed part of the genuine certificate. No certificate with another
 * signed part may be accepted.
 */
const SIGNED_LENGTH = LEAF.readUInt16BE(6) + 4;

export const target: FuzzTarget = {
  parser: 'leadsToAuthority',
  seeds: [LEAF, ROOT.raw],
  dictionary: [
    Buffer.from('0603551d13', 'hex'),
    Buffer.from('0603551d1e', 'hex'),
    Buffer.from('0603551d25', 'hex'),
    Buffer.from('0603551d0f', 'hex'),
    Buffer.from('06082b06010505070302', 'hex'),
  ],
  structure: DER,
  longest: 2048,
  run(input) {
    // In a TLS handshake, OpenSSL reads the certificate first and ends the connection if it cannot.
    // So only certificates that OpenSSL can read matter.
    const certificate = attempt(
      () => new X509Certificate(input),
      () => true,
    );
    if (!certificate || !hasReadableKey(certificate)) return false;
    const isAccepted =
      attempt(() => leadsToAuthority(certificate, [ROOT], NOW), isAsnError) ?? false;
    const isGenuine =
      certificate.raw.subarray(4, 4 + SIGNED_LENGTH).equals(LEAF.subarray(4, 4 + SIGNED_LENGTH)) ||
      certificate.raw.equals(ROOT.raw);
    rule(!isAccepted || isGenuine, 'a certificate that no authority signed is accepted');
    return isAccepted;
  },
};

/**
 * Returns true for an error of ASN.1.js, which the caller of the parser treats as a refusal. For a
 * malformed time the library throws an error without a name of its own.
 */
const isAsnError = (error: unknown) =>
  error instanceof Error &&
  (error.name === 'AsnError' || error.message === 'Wrong input string for conversion');

/** Returns true if OpenSSL can read the public key, which it needs for the TLS handshake. */
function hasReadableKey(certificate: X509Certificate): boolean {
  return (
    attempt(
      () => certificate.publicKey.asymmetricKeyType !== undefined,
      () => true,
    ) ?? false
  );
}
