import { createPrivateKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { readCertificates, readKeys, readPem } from '#platform/tls/pem.js';
import { holdsCertificates, holdsPrivateKey } from '#platform/tls/tls-material.js';
import { pem, readBy } from './base-shapes.js';

/** Certificates in PEM, or a file of them. */
export const certificates = readBy(
  pem,
  readCertificates,
  'must be PEM certificates, or a readable file of them',
);

/** The certificate chain of a listener. */
export const tlsCertificates = z
  .string()
  .refine(holdsCertificates, 'must be PEM certificates, base64 of them, or a readable file');
/** The key of a listener. */
export const tlsKey = z
  .string()
  .refine(holdsPrivateKey, 'must be a PEM private key, base64 of it, or a readable file');

/** An RSA private key in PKCS#1 or PKCS#8, which becomes PKCS#8. */
export const rsaPrivateKey = readBy(
  pem,
  (value) => {
    const key = createPrivateKey(readPem(value));
    const isRsa = key.asymmetricKeyType === 'rsa';
    return isRsa ? key.export({ type: 'pkcs8', format: 'pem' }).toString() : undefined;
  },
  'must be an RSA private key in PEM, base64 of it, or a readable file',
);

/** The problems of signing keys. A rule repeats them for a first key that should be private. */
export const SIGNING_KEY_PROBLEMS = {
  ec: 'must be P-256 keys in PEM, a private one first',
  rsa: 'must be RSA keys of 3072 bits or more in PEM, a private one first',
} as const;

/**
 * Blocks of PEM: the first is the private key that signs, the others are only published. A public
 * key may come first if a key in KMS signs, which a rule of `setting-rules.ts` checks.
 */
const signingKeys = (fits: (key: KeyObject) => boolean, message: string) =>
  readBy(pem, (value) => readKeys(value, fits), message);

/** Keys that sign with ES256. */
export const ecSigningKeys = signingKeys(
  (key) => key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1',
  SIGNING_KEY_PROBLEMS.ec,
);
/** Keys that sign with RS256. */
export const rsaSigningKeys = signingKeys(
  (key) =>
    key.asymmetricKeyType === 'rsa' && (key.asymmetricKeyDetails?.modulusLength ?? 0) >= 3072,
  SIGNING_KEY_PROBLEMS.rsa,
);
