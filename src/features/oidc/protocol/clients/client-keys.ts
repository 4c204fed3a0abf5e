import { CLIENT_ALGORITHMS, FAPI_ALGORITHMS } from '../client-metadata.js';

/**
 * The members of a client's public key (RFC 7517 §4) that decide which signatures it can verify.
 */
interface Jwk {
  readonly kty?: unknown;
  readonly crv?: unknown;
  readonly n?: unknown;
  readonly alg?: unknown;
  readonly use?: unknown;
  readonly key_ops?: unknown;
  readonly x5c?: unknown;
}

/** The metadata of a client (RFC 7591 §2) that decide what its keys are for. */
interface KeyedMetadata {
  readonly jwks?: { readonly keys?: readonly Jwk[] };
  readonly svc_profile?: string;
  readonly token_endpoint_auth_method?: string;
  readonly token_endpoint_auth_signing_alg?: string;
  readonly request_object_signing_alg?: string;
  readonly require_signed_request_object?: boolean;
}

/**
 * The key type and the curve of each signature algorithm (RFC 7518 §3.1, RFC 8037 §3.1, RFC 9864).
 */
const KEYS_OF_ALGORITHMS: Readonly<Record<string, readonly [kty: string, crv?: string]>> = {
  RS256: ['RSA'],
  PS256: ['RSA'],
  ES256: ['EC', 'P-256'],
  EdDSA: ['OKP', 'Ed25519'],
  Ed25519: ['OKP', 'Ed25519'],
};

/**
 * Returns a text for the developer if none of a client's keys fits an algorithm with which the
 * client may sign. Keys behind `jwks_uri` are not checked, because the client can change them at
 * any time.
 *
 * @returns undefined for keys without a fault
 */
export function keysProblem(metadata: object): string | undefined {
  const { jwks, ...client } = metadata as KeyedMetadata;
  const keys = jwks?.keys;
  if (!Array.isArray(keys)) return undefined;
  const allowed = client.svc_profile === 'fapi2' ? FAPI_ALGORITHMS : CLIENT_ALGORITHMS;
  const fits = (algorithms: readonly string[]) =>
    keys.some((key: Jwk) => algorithms.some((algorithm) => canVerify(key, algorithm)));

  const { token_endpoint_auth_method: method, request_object_signing_alg: requestAlg } = client;
  if (method === 'self_signed_tls_client_auth') {
    return keys.some(({ x5c }: Jwk) => Array.isArray(x5c) && x5c.length > 0)
      ? undefined
      : 'jwks must hold a certificate (x5c) for self_signed_tls_client_auth';
  }
  const { token_endpoint_auth_signing_alg: authAlg } = client;
  if (method === 'private_key_jwt' && !fits(authAlg === undefined ? allowed : [authAlg])) {
    return `jwks has no key for ${listOf(authAlg === undefined ? allowed : [authAlg])} in client assertions`;
  }
  const isSigned = requestAlg !== undefined || client.require_signed_request_object === true;
  const requestAlgs = requestAlg === undefined ? allowed : [requestAlg];
  if (isSigned && !fits(requestAlgs)) {
    return `jwks has no key for ${listOf(requestAlgs)} in request objects`;
  }
  const isForSigning = keys.some(({ use }: Jwk) => use !== 'enc');
  return isForSigning && !fits(allowed) ? `jwks has no key for ${listOf(allowed)}` : undefined;
}

/** The size in bits of the smallest RSA key whose signatures are accepted (RFC 7518 §3.3, §3.5). */
const FEWEST_RSA_BITS = 2048;

/**
 * Returns true if a public key can verify signatures of an algorithm: by its type, its curve or
 * size, and the use that it states.
 */
function canVerify({ kty, crv, n, alg, use, key_ops: operations }: Jwk, algorithm: string) {
  const [type, curve] = KEYS_OF_ALGORITHMS[algorithm] ?? [];
  return (
    kty === type &&
    (curve === undefined || crv === curve) &&
    (type !== 'RSA' || bitsOf(n) >= FEWEST_RSA_BITS) &&
    (alg === undefined || alg === algorithm) &&
    (use === undefined || use === 'sig') &&
    (!Array.isArray(operations) || operations.includes('verify'))
  );
}

/** Returns the number of bits of an integer that is encoded in base64url (RFC 7518 §6.3.1.1). */
function bitsOf(integer: unknown): number {
  const hex = typeof integer === 'string' ? Buffer.from(integer, 'base64url').toString('hex') : '';
  return hex === '' ? 0 : BigInt(`0x${hex}`).toString(2).length;
}

function listOf(algorithms: readonly string[]): string {
  return new Intl.ListFormat('en', { type: 'disjunction' }).format(algorithms);
}
