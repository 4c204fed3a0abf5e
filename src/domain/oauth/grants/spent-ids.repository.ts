import { hash } from 'node:crypto';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { sql } from '#platform/database/statements/sql.js';

/**
 * The id (`jti`) of a client assertion or DPoP proof that is used now, with the issuer within which
 * the id is unique.
 */
export interface Spend {
  readonly issuer: string;
  readonly jti: string;
  /**
   * The time after which the id may be forgotten, because the assertion or proof is then refused as
   * expired.
   */
  readonly expiresAt: Date;
}

/**
 * Marks ids of client assertions and DPoP proofs as used, because each may be used once (RFC 7523
 * §3, RFC 9449 §11.1). The result is true for exactly one caller of each id until the id expires.
 * One statement decides, so that of two replicas one succeeds. If an id occurs twice in one call,
 * only its first occurrence succeeds. The ids are sorted by their hashes, so that no two statements
 * deadlock.
 */
export async function spendIds(tx: EntityManager, spends: readonly Spend[]): Promise<boolean[]> {
  const keys = spends.map(keyOfSpend);
  const firsts = new Map<string, Date>();
  for (const [index, { expiresAt }] of spends.entries()) {
    const key = keys[index] ?? '';
    if (!firsts.has(key)) firsts.set(key, expiresAt);
  }
  const sent = [...firsts].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const won = await sql<{ key: string }>(tx)`
    INSERT INTO oauth_replays (key, expires_at)
    SELECT decode(k.key, 'hex'), k.expires_at
    FROM unnest((SELECT ${sent.map(([key]) => key)}::text[]), (SELECT ${sent.map(([, expiresAt]) => expiresAt)}::timestamptz[]))
      AS k (key, expires_at)
    ON CONFLICT (key) DO UPDATE SET expires_at = EXCLUDED.expires_at WHERE oauth_replays.expires_at < now()
    RETURNING encode(key, 'hex') AS key`;
  const winners = new Set(won.map(({ key }) => key));
  return keys.map((key) => winners.delete(key));
}

/** Returns the key under which a spent id is stored, in hexadecimal digits. */
export function keyOfSpend({ issuer, jti }: Pick<Spend, 'issuer' | 'jti'>): string {
  return hash('sha256', JSON.stringify([issuer, jti]), 'hex');
}
