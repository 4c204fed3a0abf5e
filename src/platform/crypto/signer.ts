import {
  createPublicKey,
  sign,
  verify,
  type KeyObject,
  type SignKeyObjectInput,
} from 'node:crypto';
import { promisify } from 'node:util';

/**
 * The algorithm of a signature. ES256 is ECDSA with the curve P-256 and SHA-256; RS256 is RSA with
 * the padding of PKCS#1 v1.5 and SHA-256.
 */
export type SignerAlgorithm = 'ES256' | 'RS256' | 'Ed25519';

/**
 * A private key that signs. The key itself may be in this process or in a key service such as AWS
 * KMS.
 */
export interface Signer {
  readonly alg: SignerAlgorithm;
  readonly publicKey: KeyObject;
  /**
   * Signs a message. The signature is raw: `r || s` of 64 bytes for ES256 (RFC 7518 §3.4), PKCS#1
   * v1.5 for RS256, 64 bytes for Ed25519.
   */
  sign(message: Buffer): Promise<Buffer>;
}

/**
 * Signs in a thread of libuv, because an RSA signature takes about a millisecond, in which the main
 * thread could serve no other request.
 */
const signInThread = promisify<string | null, Buffer, SignKeyObjectInput, Buffer>(sign);

/**
 * Returns a signer with a private key of this process.
 * @throws Error if no algorithm fits the key
 */
export function localSigner(privateKey: KeyObject): Signer {
  const alg = algorithmOf(privateKey);
  if (alg === undefined) throw new Error('only P-256, RSA and Ed25519 keys sign');
  const digest = alg === 'Ed25519' ? null : 'sha256';
  const input: SignKeyObjectInput = { key: privateKey, dsaEncoding: 'ieee-p1363' };
  return {
    alg,
    publicKey: createPublicKey(privateKey),
    sign: (message) => signInThread(digest, message, input),
  };
}

/**
 * Returns true if a raw signature, in the form that {@link Signer.sign} returns, is valid for a
 * message under a public key.
 */
export function isSignatureOf(
  { alg, publicKey }: Pick<Signer, 'alg' | 'publicKey'>,
  message: Buffer,
  signature: Buffer,
): boolean {
  const digest = alg === 'Ed25519' ? null : 'sha256';
  return verify(digest, message, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature);
}

/** Returns the algorithm of a key's signatures; undefined for a key of any other type or curve. */
export function algorithmOf(key: KeyObject): SignerAlgorithm | undefined {
  if (key.asymmetricKeyType === 'ed25519') return 'Ed25519';
  if (key.asymmetricKeyType === 'rsa') return 'RS256';
  const isP256 = key.asymmetricKeyDetails?.namedCurve === 'prime256v1';
  return key.asymmetricKeyType === 'ec' && isP256 ? 'ES256' : undefined;
}

/** The bytes of each of the two numbers in a P-256 signature. */
const HALF = 32;

/**
 * Converts a P-256 signature from DER (`SEQUENCE { r INTEGER, s INTEGER }`, RFC 3279 §2.2.3) to
 * `r || s`.
 *
 * @throws RangeError for any other bytes
 */
export function rawEcdsaSignature(der: Buffer): Buffer {
  if (der.length < 2 || der[0] !== 0x30 || der[1] !== der.length - 2) throw malformed();
  const r = derInteger(der, 2);
  const s = derInteger(der, r.end);
  if (s.end !== der.length) throw malformed();
  return Buffer.concat([r.value, s.value]);
}

/**
 * Reads the INTEGER at an offset. Returns its value as 32 bytes, and the offset of the byte after
 * it.
 *
 * @throws RangeError for a negative number, one of more than 32 bytes, or one that DER encodes
 *   shorter
 */
function derInteger(der: Buffer, at: number): { readonly value: Buffer; readonly end: number } {
  const length = der[at + 1] ?? 0;
  const end = at + 2 + length;
  const bytes = der.subarray(at + 2, end);
  const [first = 0x80, second = 0] = bytes;
  const isPadded = first === 0 && length > 1;
  if (der[at] !== 0x02 || bytes.length !== length || first >= 0x80) throw malformed();
  if (isPadded && second < 0x80) throw malformed();
  const digits = isPadded ? bytes.subarray(1) : bytes;
  if (digits.length > HALF) throw malformed();
  const value = Buffer.alloc(HALF);
  digits.copy(value, HALF - digits.length);
  return { value, end };
}

function malformed(): RangeError {
  return new RangeError('not a P-256 signature in DER');
}
