import { CompactEncrypt, compactDecrypt, errors } from 'jose';
import type { Config } from '#platform/config/config.js';
import { deriveKey } from './derive-key.js';

const ALGORITHMS = { alg: 'dir', enc: 'A256GCM' } as const;

/** A secret that was sealed, opened. */
export interface OpenedSecret {
  readonly text: string;
  /** Only the previous root secret opened it: it is to be sealed anew while that one is still known. */
  readonly isOutdated: boolean;
}

/**
 * Seals a secret that is to be kept: a JWE (RFC 7516, `dir` with A256GCM) under the key that the root secret has for this
 * purpose. Unlike a sealed token it never expires.
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

/** Opens what was sealed for this purpose, under the root secret or the one before; undefined for anything else. */
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
      // Not sealed under this one: the previous secret may still open it.
    }
  }
  return undefined;
}

function keyOf(secret: string, purpose: string): Buffer {
  return deriveKey(secret, `sealed secret: ${purpose}`, 32);
}
