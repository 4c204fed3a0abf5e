import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { Config } from '#platform/config/config.js';
import { openSecret, sealSecret } from '#platform/crypto/sealed-secret.js';
import { localSigner, type Signer } from '#platform/crypto/signer.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { KmsKeys } from '#platform/kms/kms-keys.js';
import { verifierOf, type SealKey } from './checkpoint.js';
import { peekSealKey, recordSealKey, recordVerifier, resealKey } from './seal-keys.repository.js';

/**
 * A name that goes into the derivation of the key that encrypts the stored seal key, so that no
 * other secret is encrypted by it.
 */
const PURPOSE = 'audit seal key';

type SealConfig = Pick<Config, 'auditSeal' | 'secrets'> & {
  readonly http: Pick<Config['http'], 'baseUrl'>;
};

/**
 * Opens the key that signs checkpoints: the one in KMS, or the configured one, or the key in the
 * database, which the first start makes. The public key is recorded, so that verifiers find it for
 * old checkpoints after the key was replaced.
 *
 * Returns undefined if neither the present nor the previous root secret decrypts the stored key.
 * The process then logs a warning and seals nothing. It still starts, because people need their
 * credentials even without the seal.
 */
export async function openSealKey(
  config: SealConfig,
  tx: EntityManager,
  kms: KmsKeys,
): Promise<SealKey | undefined> {
  const name = `${new URL(config.http.baseUrl).host}/audit`;
  const signer = await signerOf(config, name, tx, kms);
  if (!signer) return undefined;
  const key = { name, signer };
  await recordVerifier(tx, verifierOf(key));
  return key;
}

async function signerOf(
  config: SealConfig,
  name: string,
  tx: EntityManager,
  kms: KmsKeys,
): Promise<Signer | undefined> {
  const { kmsKeyId, key } = config.auditSeal;
  if (kmsKeyId !== undefined) return kms.signer(kmsKeyId, 'Ed25519');
  const pem = key ?? (await storedKey(config.secrets, name, tx));
  return pem === undefined ? undefined : localSigner(createPrivateKey(pem));
}

/**
 * Returns the key in the database as PEM; undefined if it cannot be decrypted. If the database has
 * none, a key is made.
 */
async function storedKey(
  secrets: SealConfig['secrets'],
  name: string,
  tx: EntityManager,
): Promise<string | undefined> {
  const sealed = (await peekSealKey(tx)) ?? (await makeKey(secrets, name, tx));
  const opened = await openSecret(secrets, PURPOSE, sealed);
  if (!opened) {
    new Logger('security').warn(
      'SVC_JWT_SECRET does not open the key of the audit seal in this database, so this process seals nothing: ' +
        'set the secret that sealed the key as SVC_JWT_SECRET_PREVIOUS, or a new key as SVC_AUDIT_SEAL_KEY',
    );
    return undefined;
  }
  if (opened.isOutdated) {
    await resealKey(tx, sealed, await sealSecret(secrets, PURPOSE, opened.text));
  }
  return opened.text;
}

/**
 * Makes a key and stores it encrypted. If another process stored a key first, that key stays.
 * Returns the encrypted key that is in the database afterwards.
 */
async function makeKey(
  secrets: SealConfig['secrets'],
  name: string,
  tx: EntityManager,
): Promise<string> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const verifier = verifierOf({ name, signer: localSigner(privateKey) });
  return recordSealKey(tx, verifier, await sealSecret(secrets, PURPOSE, pem));
}
