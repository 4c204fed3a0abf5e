import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { openSecret, sealSecret } from '#platform/crypto/sealed-secret.js';
import { localSigner, type Signer } from '#platform/crypto/signer.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { KmsKeys } from '#platform/kms/kms-keys.js';
import { verifierOf, type SealKey } from './checkpoint.js';

/** The purpose from which the key is derived that encrypts the stored key. */
const PURPOSE = 'audit seal key';

type SealConfig = Pick<Config, 'auditSeal' | 'http' | 'secrets'>;

/**
 * Opens the key that signs checkpoints: the first one in KMS, or the configured one, or the key in
 * the database, which the first start makes. The public key is recorded, so that verifiers of old
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
  await sql(tx)`
    INSERT INTO audit_seal_keys (verifier) VALUES (${verifierOf(key)}) ON CONFLICT (verifier) DO NOTHING`;
  return key;
}

/** Lists the public keys that have signed checkpoints, the newest first. */
export async function listVerifiers(tx: EntityManager): Promise<string[]> {
  const rows = await sql<{ verifier: string }>(tx)`
    SELECT verifier FROM audit_seal_keys ORDER BY made_at DESC, verifier`;
  return rows.map(({ verifier }) => verifier);
}

async function signerOf(
  config: SealConfig,
  name: string,
  tx: EntityManager,
  kms: KmsKeys,
): Promise<Signer> {
  const { kmsKeyId, key } = config.auditSeal;
  if (kmsKeyId !== undefined) return kms.signer(kmsKeyId, 'Ed25519');
  if (key !== undefined) return localSigner(createPrivateKey(key));
  return localSigner(createPrivateKey(await storedKey(config, name, tx)));
}

/** Returns the stored key as PEM. A missing key is made. */
async function storedKey(
  { secrets }: SealConfig,
  name: string,
  tx: EntityManager,
): Promise<string> {
  const sealed = (await peekSealed(tx)) ?? (await recordSealed(tx, secrets, name));
  const opened = await openSecret(secrets, PURPOSE, sealed);
  if (!opened) {
    throw new ConfigProblems([
      'SVC_JWT_SECRET: does not open the key of the audit seal in this database; set the secret that sealed it as SVC_JWT_SECRET_PREVIOUS or SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS',
    ]);
  }
  if (opened.isOutdated) {
    const again = await sealSecret(secrets, PURPOSE, opened.text);
    await sql(tx)`UPDATE audit_seal_keys SET sealed = ${again} WHERE sealed = ${sealed}`;
  }
  return opened.text;
}

/** Makes a key, unless another replica has made one meanwhile, and returns the stored one. */
async function recordSealed(
  tx: EntityManager,
  secrets: SealConfig['secrets'],
  name: string,
): Promise<string> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const verifier = verifierOf({ name, signer: localSigner(privateKey) });
  await sql(tx)`
    INSERT INTO audit_seal_keys (verifier, sealed)
    VALUES (${verifier}, ${await sealSecret(secrets, PURPOSE, pem)}) ON CONFLICT DO NOTHING`;
  const sealed = await peekSealed(tx);
  if (sealed === undefined) throw new Error('INSERT returned no row');
  return sealed;
}

async function peekSealed(tx: EntityManager): Promise<string | undefined> {
  const [row] = await sql<{ sealed: string }>(tx)`
    SELECT sealed FROM audit_seal_keys WHERE sealed IS NOT NULL`;
  return row?.sealed;
}
