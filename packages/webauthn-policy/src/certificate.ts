import { X509Certificate } from 'node:crypto';
import { BitString, fromBER } from 'asn1js';
import { BasicConstraints, Certificate } from 'pkijs';
import { Refusal } from './refusal.js';

/**
 * The object identifiers of the extensions that this policy reads (RFC 5280 §4.2.1, and those of
 * FIDO).
 */
export const EXTENSION = {
  keyUsage: '2.5.29.15',
  basicConstraints: '2.5.29.19',
  /** The AAGUID extension, id-fido-gen-ce-aaguid (WebAuthn §8.2.1). */
  aaguid: '1.3.6.1.4.1.45724.1.1.4',
} as const;

/** The object identifiers of the subject's attributes (RFC 4519 §2). */
export const ATTRIBUTE = {
  commonName: '2.5.4.3',
  country: '2.5.4.6',
  organization: '2.5.4.10',
  organizationalUnit: '2.5.4.11',
} as const;

/**
 * The header of a BIT STRING of 257 octets: one octet for the number of unused bits, and 256 octets
 * for an RSA-2048 signature.
 */
const RSA_2048_BIT_STRING = Buffer.from([0x03, 0x82, 0x01, 0x01]);

/**
 * The bit keyCertSign in the first octet of a KeyUsage BIT STRING: bit 5, counted from the left.
 */
const KEY_CERT_SIGN = 0x04;

/** A parsed certificate: the X.509 object of Node.js, and the fields that Node.js does not show. */
export interface ParsedCertificate {
  readonly x509: X509Certificate;
  /** The X.509 version: 1, 2 or 3. */
  readonly version: number;
  /**
   * The extensions by their object identifiers; none occurs twice. `value` is the content of the
   * extnValue OCTET STRING.
   */
  readonly extensions: ReadonlyMap<string, { readonly critical: boolean; readonly value: Buffer }>;
  /** The subject's attributes in their order. */
  readonly subject: readonly { readonly oid: string; readonly value: string }[];
  /** The Basic Constraints; undefined if the certificate has none. */
  readonly basicConstraints: { readonly ca: boolean; readonly pathLength: number } | undefined;
  readonly signsCertificates: boolean;
}

/**
 * Parses one DER certificate.
 *
 * @throws Refusal in these cases: the bytes are not exactly one DER certificate; an extension
 *   occurs twice, or in a certificate before version 3 (RFC 5280 §4.1.2.9); the issuer is missing
 *   (§4.1.2.4); or the certificate is an authority for this parser but not for OpenSSL
 */
export function parseCertificate(bytes: Uint8Array): ParsedCertificate {
  const der = withWholeSignatureOctets(bytes);
  let x509: X509Certificate;
  let certificate: Certificate;
  try {
    x509 = new X509Certificate(der);
    certificate = Certificate.fromBER(der);
  } catch (cause) {
    throw new Refusal('A certificate in x5c is malformed.', { cause });
  }
  // OpenSSL and ASN.1.js both ignore trailing bytes and accept BER, so that different byte strings
  // would be read as one certificate. Only plain DER may pass.
  if (!x509.raw.equals(der)) throw new Refusal('A certificate in x5c is not plain DER.');

  const extensions = new Map<string, { critical: boolean; value: Buffer }>();
  for (const { extnID, critical, extnValue } of certificate.extensions ?? []) {
    if (extensions.has(extnID)) throw new Refusal('A certificate in x5c repeats an extension.');
    extensions.set(extnID, { critical, value: Buffer.from(extnValue.valueBlock.valueHexView) });
  }
  const version = certificate.version + 1;
  if (extensions.size > 0 && version !== 3) {
    throw new Refusal('A certificate in x5c has extensions, and is not of version 3.');
  }
  const basicConstraints = readBasicConstraints(extensions.get(EXTENSION.basicConstraints)?.value);
  const signsCertificates = readKeyCertSign(extensions.get(EXTENSION.keyUsage)?.value);
  if (basicConstraints?.ca === true && signsCertificates && !x509.ca) {
    throw new Refusal('A certificate in x5c has malformed extensions.');
  }
  if (!hasIssuer(x509)) throw new Refusal('A certificate in x5c names no issuer.');
  return {
    x509,
    version,
    extensions,
    subject: certificate.subject.typesAndValues.map(({ type, value }) => ({
      oid: type,
      value: value.valueBlock.value,
    })),
    basicConstraints,
    signsCertificates,
  };
}

/**
 * Returns true if a trusted root may sign certificates. A root without a Key Usage is not
 * restricted (RFC 5280 §4.2.1.3), because a deployment trusts it by its key and not by its
 * extensions.
 */
export function mayBeRoot({ basicConstraints, extensions, signsCertificates }: ParsedCertificate) {
  const isUnrestricted = !extensions.has(EXTENSION.keyUsage);
  return basicConstraints?.ca === true && (signsCertificates || isUnrestricted);
}

/** Returns true if a certificate names its issuer. For an empty name Node.js may have no text. */
function hasIssuer({ issuer }: { readonly issuer: string | undefined }): boolean {
  return issuer !== undefined && issuer !== '';
}

/** Returns every value of an attribute in the subject of a certificate. */
export function subjectValues(certificate: ParsedCertificate, oid: string): string[] {
  return certificate.subject.filter((part) => part.oid === oid).map((part) => part.value);
}

/**
 * Sets the number of unused bits in an RSA-2048 signature to 0. The genuine certificates of the
 * first U2F keys state unused bits there, and OpenSSL would then shorten the signature. The octet
 * is outside of the signed part, so that nothing that the certificate states changes.
 */
function withWholeSignatureOctets(bytes: Uint8Array): Buffer {
  const der = Buffer.from(bytes);
  const unusedBits = der.length - 257;
  const isRsa2048Signature =
    unusedBits > 4 && der.subarray(unusedBits - 4, unusedBits).equals(RSA_2048_BIT_STRING);
  if (isRsa2048Signature) der[unusedBits] = 0;
  return der;
}

function readBasicConstraints(value: Buffer | undefined): ParsedCertificate['basicConstraints'] {
  if (!value) return undefined;
  try {
    const { cA, pathLenConstraint } = BasicConstraints.fromBER(value);
    if (pathLenConstraint !== undefined && typeof pathLenConstraint !== 'number') {
      throw new RangeError('path length beyond an integer');
    }
    return { ca: cA, pathLength: pathLenConstraint ?? Infinity };
  } catch (cause) {
    throw new Refusal('A certificate in x5c has malformed Basic Constraints.', { cause });
  }
}

function readKeyCertSign(value: Buffer | undefined): boolean {
  if (!value) return false;
  try {
    const { result, offset } = fromBER(value);
    if (!(result instanceof BitString) || offset !== value.length) {
      throw new TypeError('not exactly one BIT STRING');
    }
    return ((result.valueBlock.valueHexView[0] ?? 0) & KEY_CERT_SIGN) !== 0;
  } catch (cause) {
    throw new Refusal('A certificate in x5c has a malformed Key Usage.', { cause });
  }
}
