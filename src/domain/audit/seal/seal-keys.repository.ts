import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** Records the public key of a key that signs checkpoints, unless it is recorded already. */
export async function recordVerifier(tx: EntityManager, verifier: string): Promise<void> {
  await sql(tx)`
    INSERT INTO audit_seal_keys (verifier) VALUES (${verifier}) ON CONFLICT (verifier) DO NOTHING`;
}

/** Lists the public keys that have signed checkpoints, the newest first. */
export async function listVerifiers(tx: EntityManager): Promise<string[]> {
  const rows = await sql<{ verifier: string }>(tx)`
    SELECT verifier FROM audit_seal_keys ORDER BY made_at DESC, verifier`;
  return rows.map(({ verifier }) => verifier);
}

/** Returns the encrypted seal key that the service made itself; undefined if there is none. */
export async function peekSealKey(tx: EntityManager): Promise<string | undefined> {
  const [row] = await sql<{ sealed: string }>(tx)`
    SELECT sealed FROM audit_seal_keys WHERE sealed IS NOT NULL`;
  return row?.sealed;
}

/**
 * Stores the encrypted seal key, unless another replica has stored one before. Returns the
 * encrypted key that the database has afterwards.
 */
export async function recordSealKey(
  tx: EntityManager,
  verifier: string,
  sealed: string,
): Promise<string> {
  await sql(tx)`
    INSERT INTO audit_seal_keys (verifier, sealed) VALUES (${verifier}, ${sealed}) ON CONFLICT DO NOTHING`;
  const stored = await peekSealKey(tx);
  if (stored === undefined) throw new Error('INSERT returned no row');
  return stored;
}

/**
 * Replaces the ciphertext of the seal key, for example after a change of the root secret, unless
 * another process has replaced it already.
 */
export async function resealKey(tx: EntityManager, from: string, to: string): Promise<void> {
  await sql(tx)`UPDATE audit_seal_keys SET sealed = ${to} WHERE sealed = ${from}`;
}
