import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** A stored key with which this service signs SAML requests. */
export interface StoredKey {
  readonly number: number;
  /** The private key, encrypted under the root secret. */
  readonly sealed: string;
  /** The certificate in DER. */
  readonly certificate: Buffer;
  readonly madeAt: Date;
  readonly notAfter: Date;
}

/** Lists the keys that sign SAML requests, the oldest first. */
export function listSpKeys(tx: EntityManager): Promise<StoredKey[]> {
  return sql<StoredKey>(tx)`
    SELECT number, sealed, certificate, made_at AS "madeAt", not_after AS "notAfter"
      FROM saml_sp_keys ORDER BY number`;
}

/**
 * Stores a key. If another replica has already stored a key with this number, nothing is stored,
 * and both replicas use that key.
 */
export async function addSpKey(tx: EntityManager, key: StoredKey): Promise<void> {
  await sql(tx)`
    INSERT INTO saml_sp_keys (number, sealed, certificate, made_at, not_after)
    VALUES (${key.number}, ${key.sealed}, ${key.certificate}, ${key.madeAt}, ${key.notAfter})
    ON CONFLICT (number) DO NOTHING`;
}

/** Replaces the ciphertext of a key, unless another replica has replaced it already. */
export async function resealSpKey(
  tx: EntityManager,
  { number, sealed }: Pick<StoredKey, 'number' | 'sealed'>,
  to: string,
): Promise<void> {
  await sql(tx)`
    UPDATE saml_sp_keys SET sealed = ${to} WHERE number = ${number} AND sealed = ${sealed}`;
}
