import { hkdfSync } from 'node:crypto';
import { CompactEncrypt, compactDecrypt, errors } from 'jose';
import type { Config } from '#platform/config/config.js';

const ALGORITHMS = { alg: 'dir', enc: 'A256GCM' } as const;

/** A secret in plain text, after it was decrypted. */
export interface OpenedSecret {
  readonly text: string;
  /**
   * True if the previous root secret decrypted the text. The caller must then seal the text again,
   * because it cannot be opened after the operator removes the previous root secret.
   */
  readonly isOutdated: boolean;
}

/**
 * Encrypts a secret for storage: as a JWE (RFC 7516, `dir` with A256GCM) under the key that is
 * derived from the root secret for this purpose. Unlike a sealed token, a sealed secret never
 * expires.
 */
export function sealSecret(
  { root }: Config['secrets'],
  purpose: string,
  text: string,
): Promise<string> {
  return new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader(ALGORITHMS)
    .encrypt(keyOf(root, purpose));
}

/**
 * Decrypts a secret that was sealed for this purpose under the current or previous root secret.
 * Returns undefined for anything else.
 */
export async function openSecret(
  { root, previousRoot }: Config['secrets'],
  purpose: string,
  sealed: string,
): Promise<OpenedSecret | undefined> {
  for (const secret of previousRoot === undefined ? [root] : [root, previousRoot]) {
    try {
      const { plaintext } = await compactDecrypt(sealed, keyOf(secret, purpose), {
        keyManagementAlgorithms: [ALGORITHMS.alg],
        contentEncryptionAlgorithms: [ALGORITHMS.enc],
      });
      return { text: Buffer.from(plaintext).toString(), isOutdated: secret !== root };
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error;
      // The text was not sealed under this root secret. The previous one may still open it.
    }
  }
  return undefined;
}

function keyOf(secret: string, purpose: string): Buffer {
  return deriveKey(secret, `sealed secret: ${purpose}`, 32);
}

/**
 * Derives the key of one purpose from a root secret by HKDF-SHA256 (RFC 5869). A leaked key reveals
 * nothing about the keys of other purposes.
 *
 * @param length the length of the derived key, in bytes
 */
export function deriveKey(secret: string, purpose: string, length: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `svc ${purpose}`, length));
}
