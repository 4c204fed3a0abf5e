import type { webcrypto } from 'node:crypto';
import { EncryptJWT, errors, jwtDecrypt, type JWTPayload } from 'jose';
import type { Config } from '#platform/config/config.js';
import { deriveKey } from './sealed-secret.js';

const HEADER = { alg: 'dir', enc: 'A256GCM' } as const;

/**
 * Makes and reads sealed tokens, which only this deployment can read: JWEs (RFC 7516, `dir` with
 * A256GCM) under keys that are derived from the root secret by HKDF (RFC 5869). Each purpose has
 * its own key, so that a token of one purpose is refused for any other.
 */
export class SealedTokens {
  readonly #keys = new Map<string, Promise<webcrypto.CryptoKey[]>>();
  readonly #secrets: readonly string[];

  constructor(config: Pick<Config, 'secrets'>) {
    const { root, previousRoot } = config.secrets;
    this.#secrets = previousRoot === undefined ? [root] : [root, previousRoot];
  }

  /** Encrypts a payload as a token for a purpose. The token is valid for `ttlSeconds`. */
  async seal(purpose: string, payload: JWTPayload, ttlSeconds: number): Promise<string> {
    const [key] = await this.#keysOf(purpose);
    if (!key) throw new Error('no root secret');
    return new EncryptJWT(payload)
      .setProtectedHeader(HEADER)
      .setIssuedAt()
      .setExpirationTime(`${ttlSeconds}s`)
      .encrypt(key);
  }

  /** Returns the payload of a valid token of this purpose; undefined for anything else. */
  async open(purpose: string, token: string): Promise<JWTPayload | undefined> {
    for (const key of await this.#keysOf(purpose)) {
      try {
        const { payload } = await jwtDecrypt(token, key, {
          keyManagementAlgorithms: [HEADER.alg],
          contentEncryptionAlgorithms: [HEADER.enc],
          requiredClaims: ['exp'],
        });
        return payload;
      } catch (error) {
        if (!(error instanceof errors.JOSEError)) throw error;
        // The token was not sealed with this key, or has expired. The previous root secret may
        // still open it.
      }
    }
    return undefined;
  }

  /**
   * Returns the keys of a purpose. The first key seals, and every key opens. Each key is imported
   * once.
   */
  #keysOf(purpose: string): Promise<webcrypto.CryptoKey[]> {
    let keys = this.#keys.get(purpose);
    if (!keys) {
      keys = Promise.all(this.#secrets.map((secret) => importKey(secret, purpose)));
      this.#keys.set(purpose, keys);
    }
    return keys;
  }
}

async function importKey(secret: string, purpose: string): Promise<webcrypto.CryptoKey> {
  const bits = deriveKey(secret, `sealed token: ${purpose}`, 32);
  return crypto.subtle.importKey('raw', bits, 'AES-GCM', false, ['encrypt', 'decrypt']);
}
