import type { Config, ValidConfig } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import type { KmsKeys } from './kms-keys.js';

/**
 * The text whose MAC by AWS KMS is the root secret. It must never change: another text gives
 * another root secret, by which no stored secret could be decrypted.
 */
const TEXT = 'svc root secret v1';

/**
 * Completes a configuration whose root secret comes from AWS KMS. The secret is the HMAC-SHA-256 of
 * a fixed text in base64url. KMS computes it once at start-up, and it is neither stored nor logged.
 *
 * @throws ConfigProblems if KMS does not answer
 */
export async function withRootSecret(config: ValidConfig, kmsKeys: KmsKeys): Promise<Config> {
  const { root, kmsKeyId, previousRoot, previousKmsKeyId } = config.secrets;
  const ask = async (variable: string, keyId: string | undefined) =>
    keyId === undefined ? undefined : macOf(variable, keyId, kmsKeys);
  const current = root ?? (await ask('SVC_JWT_HMAC_KMS_KEY_ID', kmsKeyId));
  if (current === undefined) throw new ConfigProblems(['SVC_JWT_SECRET: is required']);
  const previous =
    previousRoot ?? (await ask('SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS', previousKmsKeyId));
  const secrets = Object.freeze({ root: current, previousRoot: previous });
  return Object.freeze({ ...config, secrets });
}

async function macOf(variable: string, keyId: string, kmsKeys: KmsKeys): Promise<string> {
  try {
    return (await kmsKeys.generateMac(keyId, TEXT)).toString('base64url');
  } catch (error) {
    const { cause } = error as { readonly cause?: unknown };
    const reason = cause instanceof Error ? cause.message : 'KMS gives no root secret';
    throw new ConfigProblems([`${variable}: ${reason}`]);
  }
}
