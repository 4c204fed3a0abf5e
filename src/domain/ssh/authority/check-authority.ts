import type { Config } from '#platform/config/config.js';
import type { Signer } from '#platform/crypto/signer.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { configuredKeys, keyVariable } from './configured-keys.js';
import { knownAuthorities } from './ssh-authority.repository.js';

/**
 * Compares the configured SSH authority with the keys in the database, for a check before the
 * service starts. It changes nothing, and makes no key file.
 *
 * @returns the text for the report: the fingerprint of the signing key, or a note that the database
 *   has recorded no key yet
 * @throws Error for a missing key, and for a key that this database does not know
 */
export async function checkAuthority(
  config: Pick<Config, 'ssh' | 'relyingParty'>,
  tx: EntityManager,
  inKms: readonly Signer[],
): Promise<string> {
  const known = (await knownAuthorities(tx)).map(({ fingerprint }) => fingerprint);
  if (known.length === 0) return 'none yet, the next start records one';
  const { signing } = await configuredKeys(config.ssh, config.relyingParty.id, known, inKms);
  if (known.includes(signing.fingerprint)) return signing.fingerprint;
  const variable = inKms.length > 0 ? 'SVC_SSH_CA_KMS_KEY_ID' : keyVariable(config.ssh);
  throw new Error(
    `${variable}: holds the key ${signing.fingerprint}, but this database belongs to the SSH certificate authority ${known.join(', ')}`,
  );
}
