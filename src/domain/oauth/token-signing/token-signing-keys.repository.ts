/**
 * The generated token-signing keys, which are stored sealed. Keys from the configuration are not
 * stored.
 */

import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { sql } from '#platform/database/statements/sql.js';

/** The kind of a key: `ec` for ES256, `rsa` for RS256. */
export type KeyKind = 'ec' | 'rsa';

/**
 * Returns the sealed key of a kind, and records that it signs from now on: it is no longer replaced
 * by a configured key. Undefined if none is stored.
 */
export async function currentKey(tx: EntityManager, kind: KeyKind): Promise<string | undefined> {
  const [row] = await sql<{ sealed: string }>(tx)`
    UPDATE token_signing_keys SET superseded_at = NULL WHERE kind = ${kind} RETURNING sealed`;
  return row?.sealed;
}

/**
 * Returns the sealed key of a kind, for a check that must change nothing; undefined if none is
 * stored.
 */
export async function peekKey(tx: EntityManager, kind: KeyKind): Promise<string | undefined> {
  const [row] = await sql<{ sealed: string }>(tx)`
    SELECT sealed FROM token_signing_keys WHERE kind = ${kind}`;
  return row?.sealed;
}

/**
 * Records that a configured key has replaced the sealed key of a kind. For a day after the first
 * such call it returns the sealed key, so that tokens signed by it verify until they end.
 */
export async function supersedeKey(tx: EntityManager, kind: KeyKind): Promise<string | undefined> {
  const [row] = await sql<{ sealed: string; is_published: boolean }>(tx)`
    UPDATE token_signing_keys SET superseded_at = coalesce(superseded_at, now()) WHERE kind = ${kind}
    RETURNING sealed, superseded_at > now() - interval '1 day' AS is_published`;
  return row?.is_published === true ? row.sealed : undefined;
}

/**
 * Stores a key unless one is stored, and returns the stored key. Of two replicas that start at
 * once, the first one stores.
 */
export async function recordKey(tx: EntityManager, kind: KeyKind, sealed: string): Promise<string> {
  const [row] = await sql<{ sealed: string }>(tx)`
    INSERT INTO token_signing_keys (kind, sealed) VALUES (${kind}, ${sealed})
    ON CONFLICT (kind) DO UPDATE SET kind = EXCLUDED.kind
    RETURNING sealed`;
  if (!row) throw new Error('INSERT returned no row');
  return row.sealed;
}

/** Replaces the sealed text of a key, unless another replica has replaced it already. */
export async function resealKey(
  tx: EntityManager,
  kind: KeyKind,
  from: string,
  to: string,
): Promise<void> {
  await sql(tx)`
    UPDATE token_signing_keys SET sealed = ${to} WHERE kind = ${kind} AND sealed = ${from}`;
}
