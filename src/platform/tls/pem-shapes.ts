import { createPrivateKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { readBy } from '#platform/text/shape-of-reader.js';
import { readCertificates, readKeys, readPem } from './pem.js';
import { holdsCertificates, holdsPrivateKey } from './tls-material.js';

/**
 * The schema of a setting with PEM certificates. Its result is a list with one PEM block for each
 * certificate.
 */
export const certificates = readBy(
  z.string(),
  readCertificates,
  'must be PEM certificates, or a readable file of them',
);

/** The schema of a setting with the certificate chain of an HTTPS listener. */
export const tlsCertificates = z
  .string()
  .refine(holdsCertificates, 'must be PEM certificates, base64 of them, or a readable file');

/** The schema of a setting with the private key of an HTTPS listener. */
export const tlsKey = z
  .string()
  .refine(holdsPrivateKey, 'must be a PEM private key, base64 of it, or a readable file');

/** The schema of a setting with an RSA private key in PKCS#1 or PKCS#8. Its result is in PKCS#8. */
export const rsaPrivateKey = privateKeyOf('rsa', 'must be an RSA private key');

/** The schema of a setting with an Ed25519 private key in PKCS#8. */
export const ed25519PrivateKey = privateKeyOf('ed25519', 'must be an Ed25519 private key');

/** Makes the schema of a setting with one private key in PEM. Its result is in PKCS#8. */
function privateKeyOf(type: KeyObject['asymmetricKeyType'], problem: string) {
  return readBy(
    z.string(),
    (value) => {
      const key = createPrivateKey(readPem(value));
      const fits = key.asymmetricKeyType === type;
      return fits ? key.export({ type: 'pkcs8', format: 'pem' }).toString() : undefined;
    },
    `${problem} in PEM, base64 of it, or a readable file`,
  );
}

/**
 * The error texts for wrong signing keys. The rule in `config/setting-rules.ts` that the first key
 * must be a private one uses the same texts.
 */
export const SIGNING_KEY_PROBLEMS = {
  ec: 'must be P-256 keys in PEM, a private one first',
  rsa: 'must be RSA keys of 3072 bits or more in PEM, a private one first',
} as const;

const isP256 = ({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject) =>
  type === 'ec' && details?.namedCurve === 'prime256v1';
const isLongRsa = ({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject) =>
  type === 'rsa' && (details?.modulusLength ?? 0) >= 3072;

/**
 * The schemas of settings with signing keys, as PEM blocks. The first block is the private key that
 * signs; the public keys of the others are only published. A public key may come first if a key in
 * AWS KMS signs, which a rule in `config/setting-rules.ts` checks.
 */
export const signingKeys = {
  ec: readBy(z.string(), (value) => readKeys(value, isP256), SIGNING_KEY_PROBLEMS.ec),
  rsa: readBy(z.string(), (value) => readKeys(value, isLongRsa), SIGNING_KEY_PROBLEMS.rsa),
};
