import type { KeyObject } from 'node:crypto';
import type { TokenKey } from '#domain/oauth/token-signing/token-key.js';
import { ExternalSigningKey, type Configuration } from '../protocol/library.js';

/**
 * A key for the OAuth library without a private part in this process. Either the private part is in
 * a key service (KMS), or the key signs nothing and is only published.
 */
class OutsideKey extends ExternalSigningKey {
  constructor(private readonly key: TokenKey) {
    super();
    const { kid, alg } = key.jwk;
    Object.assign(this, { kid, alg });
  }

  override keyObject(): KeyObject {
    return this.key.publicKey;
  }

  /**
   * Signs bytes by the key service.
   * @throws DomainError `kms_unavailable`
   */
  override sign(data: Uint8Array): Promise<Buffer> {
    const { signer } = this.key;
    if (signer === undefined) throw new Error('a key signs that is only published');
    return signer.sign(Buffer.from(data));
  }
}

/**
 * The options of the OAuth library about keys: the keys, and the experimental feature that makes
 * the library accept keys outside of this process.
 */
export interface LibraryKeys {
  readonly jwks: NonNullable<Configuration['jwks']>;
  readonly feature: { readonly enabled: boolean; readonly ack: 'experimental-01' };
}

/**
 * Returns the keys for the OAuth library. The library signs with the first key that fits, and
 * accepts an `id_token_hint` that any of them signed. The experimental feature is switched on only
 * if some key has no private part in this process.
 */
export function libraryKeys(keys: readonly TokenKey[]): LibraryKeys {
  const set = keys.map((key) => key.privateJwk ?? new OutsideKey(key));
  return {
    jwks: { keys: set },
    feature: { enabled: keys.some((key) => key.privateJwk === undefined), ack: 'experimental-01' },
  };
}
