import { generateKeyPairSync, sign, X509Certificate } from 'node:crypto';
import { BitString, Null } from 'asn1js';
import { AlgorithmIdentifier, Certificate } from 'pkijs';
import { expect, it } from 'vitest';
import { leadsToAuthority } from '../../../../src/features/oidc/protocol/clients/client-certificate-path.js';
import {
  basicConstraints,
  issueCertificate,
  keyUsage,
  type GeneratedCertificate,
} from '@svc/stand-ins/certificates';

const now = new Date();
const validity = {
  notBefore: new Date(now.getTime() - 60_000),
  notAfter: new Date(now.getTime() + 3_600_000),
};

function authorityOf(bits: number): GeneratedCertificate {
  return issueCertificate({
    ...validity,
    subject: [['CN', 'Root']],
    extensions: [basicConstraints(true), keyUsage('sign-certificates')],
    keys: generateKeyPairSync('rsa', { modulusLength: bits }),
  });
}

function leafOf(issuer: GeneratedCertificate, bits: number): GeneratedCertificate {
  const keys = generateKeyPairSync('rsa', { modulusLength: bits });
  return issueCertificate({ ...validity, subject: [['CN', 'leaf']], extensions: [], keys }, issuer);
}

/** Returns the same certificate, signed over SHA-1. */
function signedOverSha1({ der }: GeneratedCertificate, issuer: GeneratedCertificate): Buffer {
  const certificate = Certificate.fromBER(der);
  const algorithm = () =>
    new AlgorithmIdentifier({ algorithmId: '1.2.840.113549.1.1.5', algorithmParams: new Null() });
  certificate.signature = algorithm();
  certificate.signatureAlgorithm = algorithm();
  const signature = sign('sha1', Buffer.from(certificate.encodeTBS().toBER()), issuer.privateKey);
  certificate.signatureValue = new BitString({ valueHex: signature });
  return Buffer.from(certificate.toSchema(true).toBER());
}

const isGood = (leaf: Buffer, { der }: GeneratedCertificate) =>
  leadsToAuthority(new X509Certificate(leaf), [new X509Certificate(der)], now);

const root = authorityOf(2048);
const leaf = leafOf(root, 2048);

it('10.14 accepts a chain of RSA keys of 2,048 bits, signed over SHA-256', () => {
  expect(isGood(leaf.der, root)).toBe(true);
});

it('10.14 refuses a certificate that is signed over SHA-1', () => {
  expect(isGood(signedOverSha1(leaf, root), root)).toBe(false);
});

it('10.14 refuses RSA keys of less than 2,048 bits, of a client and of an authority', () => {
  expect(isGood(leafOf(root, 1024).der, root)).toBe(false);
  const short = authorityOf(1024);
  expect(isGood(leafOf(short, 2048).der, short)).toBe(false);
});
