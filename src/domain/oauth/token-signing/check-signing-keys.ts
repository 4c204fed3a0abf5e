import type { Config } from '#platform/config/config.js';
import { openSecret } from '#platform/crypto/sealed-secret.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { purposeOf } from './token-signing-keys.service.js';
import { peekKey } from './token-signing-keys.repository.js';

/**
 * Checks that the service can use the token-signing keys at its next start, and returns where the
 * keys are stored. It changes nothing.
 *
 * @throws Error for a stored key that the root secret does not decrypt
 */
export async function checkSigningKeys(
  config: Pick<Config, 'oidc' | 'secrets'>,
  tx: EntityManager,
): Promise<string> {
  const places: string[] = [];
  for (const kind of ['ec', 'rsa'] as const) {
    places.push(`${kind === 'ec' ? 'ES256' : 'RS256'}: ${await placeOf(kind)}`);
  }
  return places.join('; ');

  async function placeOf(kind: 'ec' | 'rsa'): Promise<string> {
    if (config.oidc.signingKmsKeyIds[kind].length > 0) return 'a key in KMS';
    if (config.oidc.signingKeys[kind]) return 'a configured key';
    const sealed = await peekKey(tx, kind);
    if (sealed === undefined) return 'none yet, the next start makes one';
    if (await openSecret(config.secrets, purposeOf(kind), sealed)) return 'a key in the database';
    throw new Error('SVC_JWT_SECRET: does not open the token-signing keys of this database');
  }
}
