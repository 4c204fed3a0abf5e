import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { openSecret, sealSecret } from '#platform/crypto/sealed-secret.js';
import { localSigner, type Signer } from '#platform/crypto/signer.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { KmsKeys } from '#platform/kms/kms-keys.js';
import { verifierOf, type SealKey } from './checkpoint.js';
import { peekSealKey, recordSealKey, recordVerifier, resealKey } from './seal-keys.repository.js';

/** The purpose from which the key is derived that encrypts the stored key. */
const PURPOSE = 'audit seal key';

type SealConfig = Pick<Config, 'auditSeal' | 'http' | 'secrets'>;

/**
 * Opens the key that signs checkpoints: the one in KMS, or the configured one, or the key in the
 * database, which the first start makes. The public key is recorded, so that verifiers of old
 * checkpoints find it after the key was replaced.
 *
 * @throws ConfigProblems if neither root secret decrypts the stored key
 */
export async function openSealKey(
  config: SealConfig,
  tx: EntityManager,
  kms: KmsKeys,
): Promise<SealKey> {
  const name = `${new URL(config.http.baseUrl).host}/audit`;
  const key = { name, signer: await signerOf(config, name, tx, kms) };
  await recordVerifier(tx, verifierOf(key));
  return key;
}

async function signerOf(
  config: SealConfig,
  name: string,
  tx: EntityManager,
  kms: KmsKeys,
): Promise<Signer> {
  const { kmsKeyId, key } = config.auditSeal;
  if (kmsKeyId !== undefined) return kms.signer(kmsKeyId, 'Ed25519');
  const pem = key ?? (await storedKey(config.secrets, name, tx));
  return localSigner(createPrivateKey(pem));
}

/** Returns the stored key as PEM. A missing key is made. */
async function storedKey(
  secrets: SealConfig['secrets'],
  name: string,
  tx: EntityManager,
): Promise<string> {
  const sealed = (await peekSealKey(tx)) ?? (await makeKey(secrets, name, tx));
  const opened = await openSecret(secrets, PURPOSE, sealed);
  if (!opened) {
    throw new ConfigProblems([
      'SVC_JWT_SECRET: does not open the key of the audit seal in this database; set the secret that sealed it as SVC_JWT_SECRET_PREVIOUS or SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS',
    ]);
  }
  if (opened.isOutdated) {
    await resealKey(tx, sealed, await sealSecret(secrets, PURPOSE, opened.text));
  }
  return opened.text;
}

/** Makes a key, and returns the stored one: another replica may have made it meanwhile. */
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
