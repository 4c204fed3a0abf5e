/**
 * The token-signing keys that the service generated, which are stored encrypted. Keys from the
 * configuration are not stored.
 */

import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { sql } from '#platform/database/statements/sql.js';

/** The kind of a token-signing key: `ec` for ES256, `rsa` for RS256. */
export type KeyKind = 'ec' | 'rsa';

/**
 * Returns the encrypted stored key of a kind, which signs because no key is configured. The call
 * also clears `superseded_at`, because no configured key replaces the stored key any more. Returns
 * undefined if none is stored.
 */
export async function currentKey(tx: EntityManager, kind: KeyKind): Promise<string | undefined> {
  const [row] = await sql<{ sealed: string }>(tx)`
    UPDATE token_signing_keys SET superseded_at = NULL WHERE kind = ${kind} RETURNING sealed`;
  return row?.sealed;
}

/**
 * Returns the encrypted key of a kind and changes nothing, for a check; undefined if none is
 * stored.
 */
export async function peekKey(tx: EntityManager, kind: KeyKind): Promise<string | undefined> {
  const [row] = await sql<{ sealed: string }>(tx)`
    SELECT sealed FROM token_signing_keys WHERE kind = ${kind}`;
  return row?.sealed;
}

/**
 * Records that a configured key has replaced the stored key of a kind. For a day after the first
 * such call, it returns the encrypted stored key; otherwise undefined. Tokens that the stored key
 * signed must be verifiable until they expire.
 */
export async function supersedeKey(tx: EntityManager, kind: KeyKind): Promise<string | undefined> {
  const [row] = await sql<{ sealed: string; is_published: boolean }>(tx)`
    UPDATE token_signing_keys SET superseded_at = coalesce(superseded_at, now()) WHERE kind = ${kind}
    RETURNING sealed, superseded_at > now() - interval '1 day' AS is_published`;
  return row?.is_published === true ? row.sealed : undefined;
}

/**
 * Stores an encrypted key, unless a key of the kind is stored already, and returns the stored key.
 * So two replicas that start at once use the same key.
 */
export async function recordKey(tx: EntityManager, kind: KeyKind, sealed: string): Promise<string> {
  const [row] = await sql<{ sealed: string }>(tx)`
    INSERT INTO token_signing_keys (kind, sealed) VALUES (${kind}, ${sealed})
    ON CONFLICT (kind) DO UPDATE SET kind = EXCLUDED.kind
    RETURNING sealed`;
  if (!row) throw new Error('INSERT returned no row');
  return row.sealed;
}

/** Replaces the ciphertext of a key, unless another replica has replaced it already. */
export async function resealKey(
  tx: EntityManager,
  kind: KeyKind,
  from: string,
  to: string,
): Promise<void> {
  await sql(tx)`
    UPDATE token_signing_keys SET sealed = ${to} WHERE kind = ${kind} AND sealed = ${from}`;
}
