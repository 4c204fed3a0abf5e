import { constants, generateKeyPairSync, sign, X509Certificate } from 'node:crypto';
import { BitString, Null } from 'asn1js';
import { AlgorithmIdentifier, Certificate, RSASSAPSSParams } from 'pkijs';
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

/** Returns the same certificate, signed again by this key and algorithm. */
function signedAgain(
  { der }: GeneratedCertificate,
  { privateKey }: GeneratedCertificate,
  { algorithm, hash, padding }: { algorithm: object; hash: string; padding: number },
): Buffer {
  const certificate = Certificate.fromBER(der);
  certificate.signature = new AlgorithmIdentifier(algorithm);
  certificate.signatureAlgorithm = new AlgorithmIdentifier(algorithm);
  const content = Buffer.from(certificate.encodeTBS().toBER());
  const signature = sign(hash, content, { key: privateKey, padding, saltLength: 20 });
  certificate.signatureValue = new BitString({ valueHex: signature });
  return Buffer.from(certificate.toSchema(true).toBER());
}

const { RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING } = constants;
const OVER_SHA1 = {
  algorithm: { algorithmId: '1.2.840.113549.1.1.5', algorithmParams: new Null() },
  hash: 'sha1',
  padding: RSA_PKCS1_PADDING,
};

/**
 * Returns the algorithm of RSASSA-PSS with this hash, and the options for signing with it. Without
 * `hashId` the parameters state no hash, which means SHA-1.
 */
function pss(hash: string, hashId?: string) {
  const identifier = (id: string, parameters: object = {}) =>
    new AlgorithmIdentifier({ algorithmId: id, ...parameters });
  const chosen = hashId === undefined ? {} : { hashAlgorithm: identifier(hashId) };
  const maskGenAlgorithm = identifier('1.2.840.113549.1.1.8', {
    algorithmParams: identifier(hashId ?? '1.3.14.3.2.26').toSchema(),
  });
  const parameters = new RSASSAPSSParams({ ...chosen, maskGenAlgorithm });
  return {
    algorithm: {
      algorithmId: '1.2.840.113549.1.1.10',
      algorithmParams: parameters.toSchema(),
    },
    hash,
    padding: RSA_PKCS1_PSS_PADDING,
  };
}

const isGood = (leaf: Buffer, { der }: GeneratedCertificate) =>
  leadsToAuthority(new X509Certificate(leaf), [new X509Certificate(der)], now);

const root = authorityOf(2048);
const leaf = leafOf(root, 2048);

it('10.14 accepts a chain of RSA keys of 2,048 bits, signed over SHA-256', () => {
  expect(isGood(leaf.der, root)).toBe(true);
});

it('finds the renewed authority beside the expired one with the same name and key', () => {
  const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const rootUntil = (notAfter: Date) =>
    issueCertificate({
      notBefore: new Date(now.getTime() - 7_200_000),
      notAfter,
      subject: [['CN', 'Renewed']],
      extensions: [basicConstraints(true), keyUsage('sign-certificates')],
      keys,
    });
  const [expired, renewed] = [
    rootUntil(new Date(now.getTime() - 60_000)),
    rootUntil(validity.notAfter),
  ];
  const signed = new X509Certificate(leafOf(renewed, 2048).der);
  const [old, present] = [expired, renewed].map(({ der }) => new X509Certificate(der));
  if (!old || !present) throw new Error('two certificates were made');
  expect(leadsToAuthority(signed, [old, present], now)).toBe(true);
  expect(leadsToAuthority(signed, [present, old], now)).toBe(true);
  expect(leadsToAuthority(signed, [old], now)).toBe(false);
});

it('10.14 refuses a certificate that is signed over SHA-1', () => {
  expect(isGood(signedAgain(leaf, root, OVER_SHA1), root)).toBe(false);
});

it('reads the hash of RSASSA-PSS from its parameters, and refuses SHA-1', () => {
  const overSha256 = pss('sha256', '2.16.840.1.101.3.4.2.1');
  expect(isGood(signedAgain(leaf, root, overSha256), root)).toBe(true);
  const overSha1 = signedAgain(leaf, root, pss('sha1'));
  expect(new X509Certificate(overSha1).verify(new X509Certificate(root.der).publicKey)).toBe(true);
  expect(isGood(overSha1, root)).toBe(false);
  const malformed = { algorithmId: '1.2.840.113549.1.1.10', algorithmParams: new Null() };
  expect(isGood(signedAgain(leaf, root, { ...overSha256, algorithm: malformed }), root)).toBe(
    false,
  );
});

it('10.14 refuses RSA keys of less than 2,048 bits, of a client and of an authority', () => {
  expect(isGood(leafOf(root, 1024).der, root)).toBe(false);
  const short = authorityOf(1024);
  expect(isGood(leafOf(short, 2048).der, short)).toBe(false);
});
