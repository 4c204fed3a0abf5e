import type { KmsKeyUse } from '#platform/config/table/variable.js';

/** The facts that AWS KMS states about a key. */
export interface KeyFacts {
  readonly arn: string;
  readonly state: string;
  readonly usage: string;
  readonly spec: string;
  /** The signature algorithms that the key offers. */
  readonly algorithms: readonly string[];
}

/** The properties that a key needs for a use. */
interface Requirements {
  readonly usage: string;
  /** The types of keys that fit, each with the signature algorithm that the key must offer. */
  readonly specs: Readonly<Record<string, string | undefined>>;
  readonly words: string;
}

const REQUIREMENTS: Readonly<Record<KmsKeyUse, Requirements>> = {
  ES256: {
    usage: 'SIGN_VERIFY',
    specs: { ECC_NIST_P256: 'ECDSA_SHA_256' },
    words: 'must have the key spec ECC_NIST_P256',
  },
  RS256: {
    usage: 'SIGN_VERIFY',
    specs: { RSA_3072: 'RSASSA_PKCS1_V1_5_SHA_256', RSA_4096: 'RSASSA_PKCS1_V1_5_SHA_256' },
    words: 'must have the key spec RSA_3072 or RSA_4096',
  },
  Ed25519: {
    usage: 'SIGN_VERIFY',
    specs: { ECC_NIST_EDWARDS25519: 'ED25519_SHA_512' },
    words: 'must have the key spec ECC_NIST_EDWARDS25519',
  },
  'Ed25519 or ES256': {
    usage: 'SIGN_VERIFY',
    specs: { ECC_NIST_EDWARDS25519: 'ED25519_SHA_512', ECC_NIST_P256: 'ECDSA_SHA_256' },
    words: 'must have the key spec ECC_NIST_EDWARDS25519 or ECC_NIST_P256',
  },
  HMAC: {
    usage: 'GENERATE_VERIFY_MAC',
    specs: { HMAC_256: undefined },
    words: 'must have the key spec HMAC_256',
  },
  'data keys': {
    usage: 'ENCRYPT_DECRYPT',
    specs: { SYMMETRIC_DEFAULT: undefined },
    words: 'must have the key spec SYMMETRIC_DEFAULT',
  },
};

/** Returns the reason why a key does not fit its use; undefined if it fits. */
export function keyProblem(use: KmsKeyUse, facts: KeyFacts): string | undefined {
  const { usage, specs, words } = REQUIREMENTS[use];
  if (facts.state !== 'Enabled') return 'the key is not enabled';
  if (facts.usage !== usage) return `the key must have the usage ${usage}`;
  if (!Object.hasOwn(specs, facts.spec)) return `the key ${words}`;
  const algorithm = specs[facts.spec];
  if (algorithm !== undefined && !facts.algorithms.includes(algorithm)) {
    return `the key must offer the algorithm ${algorithm}`;
  }
  return undefined;
}

/**
 * Returns true if a key is used for signatures. Only such a key has a public key, which the service
 * reads.
 */
export function isForSignatures(use: KmsKeyUse): boolean {
  return REQUIREMENTS[use].usage === 'SIGN_VERIFY';
}
