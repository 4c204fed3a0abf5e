import { generateKeyPair, sign, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { BitString, Integer, Null, Utf8String } from 'asn1js';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  Certificate,
  PublicKeyInfo,
  RelativeDistinguishedNames,
  Time,
} from 'pkijs';
import { systemRandom } from '#platform/clock/random.js';

const COMMON_NAME = '2.5.4.3';
// the object identifier of RSA with SHA-256 (RFC 4055 §5)
const SHA256_WITH_RSA = '1.2.840.113549.1.1.11';
const BITS = 3072;
/** The most characters of a common name (RFC 5280, appendix A.1). */
const LONGEST_NAME = 64;

const generate = promisify(generateKeyPair);
const signInThread = promisify<string, Buffer, KeyObject, Buffer>(sign);

/** A new key and its self-signed certificate. */
export interface CertifiedKey {
  /** The private key, as PKCS#8 in PEM. */
  readonly privateKey: string;
  /** The certificate in DER. */
  readonly certificate: Buffer;
}

/**
 * Makes an RSA key of 3072 bits with a self-signed certificate. The certificate proves nothing; it
 * exists because SAML providers import keys as certificates.
 */
export async function makeCertifiedKey(dates: {
  readonly name: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}): Promise<CertifiedKey> {
  const { publicKey, privateKey } = await generate('rsa', { modulusLength: BITS });
  const name = nameOf(dates.name.slice(0, LONGEST_NAME));
  const certificate = new Certificate({
    version: 2, // the value 2 stands for X.509 version 3
    // The leading byte 01 keeps the serial number positive and without leading zeros, as X.509
    // demands.
    serialNumber: new Integer({ valueHex: Buffer.concat([Buffer.of(1), systemRandom.bytes(15)]) }),
    signature: rsaWithSha256(),
    signatureAlgorithm: rsaWithSha256(),
    issuer: name,
    subject: name,
    notBefore: new Time({ value: dates.notBefore }),
    notAfter: new Time({ value: dates.notAfter }),
    subjectPublicKeyInfo: PublicKeyInfo.fromBER(publicKey.export({ type: 'spki', format: 'der' })),
  });
  const signed = Buffer.from(certificate.encodeTBS().toBER());
  const signature = await signInThread('sha256', signed, privateKey);
  certificate.signatureValue = new BitString({ valueHex: signature });
  return {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificate: Buffer.from(certificate.toSchema(true).toBER()),
  };
}

function nameOf(commonName: string): RelativeDistinguishedNames {
  return new RelativeDistinguishedNames({
    typesAndValues: [
      new AttributeTypeAndValue({
        type: COMMON_NAME,
        value: new Utf8String({ value: commonName }),
      }),
    ],
  });
}

function rsaWithSha256(): AlgorithmIdentifier {
  return new AlgorithmIdentifier({ algorithmId: SHA256_WITH_RSA, algorithmParams: new Null() });
}
