import { generateKeyPairSync, sign, X509Certificate, type KeyObject } from 'node:crypto';
import {
  BitString,
  Integer,
  Null,
  OctetString,
  PrintableString,
  Sequence,
  Set as Asn1Set,
  Utf8String,
  fromBER,
} from 'asn1js';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  BasicConstraints,
  Certificate,
  Extension,
  PublicKeyInfo,
  RelativeDistinguishedNames,
  Time,
} from 'pkijs';
import { systemRandom } from '../clock.js';

/** A distinguished name with its attributes in order: `[['CN', 'Test Root']]`. */
export type Name = readonly (readonly [attribute: keyof typeof ATTRIBUTES, value: string])[];

/** A certificate that this process issued, with its private key. */
export interface GeneratedCertificate {
  readonly der: Buffer;
  readonly pem: string;
  readonly subject: Name;
  readonly privateKey: KeyObject;
}

/** The contents of a certificate to issue. */
export interface CertificateRequest {
  readonly subject: Name;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly extensions: readonly Extension[];
  /** The X.509 version, 3 by default. */
  readonly version?: 1 | 3;
  /** The key pair, a new P-256 pair by default. */
  readonly keys?: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
}

const ATTRIBUTES = { CN: '2.5.4.3', C: '2.5.4.6', O: '2.5.4.10', OU: '2.5.4.11' } as const;

/** The signature algorithms, by the type of the issuer's key (RFC 5758 §3.2, RFC 4055 §5). */
const SIGNATURE_ALGORITHMS = {
  ec: () => new AlgorithmIdentifier({ algorithmId: '1.2.840.10045.4.3.2' }),
  rsa: () =>
    new AlgorithmIdentifier({
      algorithmId: '1.2.840.113549.1.1.11',
      algorithmParams: new Null(),
    }),
};

/**
 * Issues a certificate.
 *
 * @param issuer the certificate and key that sign; without it the certificate is self-signed
 */
export function issueCertificate(
  request: CertificateRequest,
  issuer?: Pick<GeneratedCertificate, 'subject' | 'privateKey'>,
): GeneratedCertificate {
  const keys = request.keys ?? generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signer = issuer ?? { subject: request.subject, privateKey: keys.privateKey };
  const type = signer.privateKey.asymmetricKeyType === 'rsa' ? 'rsa' : 'ec';
  const certificate = new Certificate({
    version: (request.version ?? 3) - 1,
    // The serial number begins with the byte 01, so that it is positive and has no leading zeros.
    serialNumber: new Integer({ valueHex: Buffer.concat([Buffer.of(1), systemRandom.bytes(8)]) }),
    signature: SIGNATURE_ALGORITHMS[type](),
    signatureAlgorithm: SIGNATURE_ALGORITHMS[type](),
    issuer: distinguishedName(signer.subject),
    subject: distinguishedName(request.subject),
    notBefore: new Time({ value: request.notBefore }),
    notAfter: new Time({ value: request.notAfter }),
    subjectPublicKeyInfo: PublicKeyInfo.fromBER(
      keys.publicKey.export({ type: 'spki', format: 'der' }),
    ),
    ...(request.extensions.length > 0 && { extensions: [...request.extensions] }),
  });
  const tbs = Buffer.from(certificate.encodeTBS().toBER());
  certificate.signatureValue = new BitString({ valueHex: sign('sha256', tbs, signer.privateKey) });
  const der = Buffer.from(certificate.toSchema(true).toBER());
  return {
    der,
    pem: new X509Certificate(der).toString(),
    subject: request.subject,
    privateKey: keys.privateKey,
  };
}

/**
 * Returns the critical extension Basic Constraints (RFC 5280 §4.2.1.9). It says if the certificate
 * may issue others, and how long a chain below it may be.
 */
export function basicConstraints(ca: boolean, pathLength?: number): Extension {
  const constraints = new BasicConstraints({
    cA: ca,
    ...(pathLength !== undefined && { pathLenConstraint: pathLength }),
  });
  return extension('2.5.29.19', constraints.toSchema().toBER(), true);
}

/**
 * Returns the critical extension Key Usage (RFC 5280 §4.2.1.3): keyCertSign and cRLSign, or
 * digitalSignature.
 */
export function keyUsage(usage: 'sign-certificates' | 'sign-data'): Extension {
  const [bits, unusedBits] = usage === 'sign-certificates' ? [0x06, 1] : [0x80, 7];
  return extension(
    '2.5.29.15',
    new BitString({ valueHex: Uint8Array.of(bits), unusedBits }).toBER(),
    true,
  );
}

/**
 * Returns the extension with the AAGUID, which names the model of a key (WebAuthn §8.2.1): the 16
 * bytes inside two OCTET STRINGs.
 */
export function aaguidExtension(aaguid: Buffer): Extension {
  return extension(AAGUID_EXTENSION, new OctetString({ valueHex: aaguid }).toBER());
}
/** The object identifier of the AAGUID extension, id-fido-gen-ce-aaguid. */
export const AAGUID_EXTENSION = '1.3.6.1.4.1.45724.1.1.4';

/**
 * Makes an extension of a certificate.
 * @param der the content of the OCTET STRING extnValue
 */
export function extension(oid: string, der: ArrayBuffer | Uint8Array, critical = false): Extension {
  return new Extension({
    extnID: oid,
    critical,
    extnValue: Uint8Array.from(new Uint8Array(der)).buffer,
  });
}

/**
 * Puts each attribute of a name into a relative name (RDN) of its own. The library pkijs alone
 * would put all attributes into one.
 */
function distinguishedName(name: Name): RelativeDistinguishedNames {
  const rdns = name.map(([attribute, value]) => {
    const typeAndValue = new AttributeTypeAndValue({
      type: ATTRIBUTES[attribute],
      value: attribute === 'C' ? new PrintableString({ value }) : new Utf8String({ value }),
    });
    return new Asn1Set({ value: [typeAndValue.toSchema()] });
  });
  const { result: schema } = fromBER(new Sequence({ value: rdns }).toBER());
  return new RelativeDistinguishedNames({ schema });
}
