import { createCipheriv, createDecipheriv, createPrivateKey, type KeyObject } from 'node:crypto';
import { systemRandom } from '#platform/clock/random.js';

/**
 * The row to which a private key belongs. The ciphertext is bound to the row, so that it cannot be
 * decrypted in another row.
 */
export interface KeyPlace {
  readonly orgId: string;
  readonly label: string;
  /** The id of the private key: the thumbprint of its public part (RFC 7638). */
  readonly kid: string;
}

const ALGORITHM = 'aes-256-gcm';
/**
 * The first byte of a ciphertext. Version 1 is a nonce of 12 bytes, a tag of 16 bytes, and the
 * encrypted PKCS#8 key in DER.
 */
const VERSION = 1;
const NONCE = 12;
const TAG = 16;

/**
 * Encrypts a private key by AES-256-GCM under a document key, with its row as additional data (NIST
 * SP 800-38D).
 */
export function sealPrivateKey(dataKey: Buffer, place: KeyPlace, privateKey: KeyObject): Buffer {
  const nonce = systemRandom.bytes(NONCE);
  const cipher = createCipheriv(ALGORITHM, dataKey, nonce, { authTagLength: TAG });
  cipher.setAAD(additionalData(place));
  const der = privateKey.export({ type: 'pkcs8', format: 'der' });
  const text = Buffer.concat([cipher.update(der), cipher.final()]);
  der.fill(0);
  return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), text]);
}

/**
 * Decrypts a private key.
 *
 * @throws Error for another document key, another row, or changed bytes
 */
export function openPrivateKey(dataKey: Buffer, place: KeyPlace, sealed: Buffer): KeyObject {
  if (sealed[0] !== VERSION) throw new Error('a sealed key has an unknown version');
  const nonce = sealed.subarray(1, 1 + NONCE);
  const tag = sealed.subarray(1 + NONCE, 1 + NONCE + TAG);
  const cipher = createDecipheriv(ALGORITHM, dataKey, nonce, { authTagLength: TAG });
  cipher.setAAD(additionalData(place));
  cipher.setAuthTag(tag);
  const text = cipher.update(sealed.subarray(1 + NONCE + TAG));
  const der = Buffer.concat([text, cipher.final()]);
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

function additionalData({ orgId, label, kid }: KeyPlace): Buffer {
  return Buffer.from(JSON.stringify(['svc issuer signing key', VERSION, orgId, label, kid]));
}
