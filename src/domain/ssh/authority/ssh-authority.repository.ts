/** The keys of the certificate authority that this database belongs to. */

import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { sql } from '#platform/database/statements/sql.js';

/** A key of the authority on record. */
export interface RecordedAuthority {
  readonly fingerprint: string;
  readonly publishedAt: Date;
  /**
   * The time of the first start with this key as the signing key; null for a key that was only
   * published.
   */
  readonly signsSince: Date | null;
}

/** The end of the last certificate of a key. */
export interface LastCertificate {
  readonly fingerprint: string;
  readonly validBefore: Date;
}

/**
 * The number of newest certificates in which the last certificate of a retired key is searched. A
 * deployment issues fewer in one session.
 */
const NEWEST = 200_000;

/**
 * Takes the lock of a start until the transaction ends, so that one process at a time checks and
 * records the keys.
 */
export async function lockAuthorities(tx: EntityManager): Promise<void> {
  await sql(tx)`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.sshAuthority})`;
}

/** Reads every key on record, the oldest first. */
export async function knownAuthorities(tx: EntityManager): Promise<RecordedAuthority[]> {
  const rows = await sql<{
    fingerprint: string;
    published_at: Date;
    signs_since: Date | null;
  }>(tx)`SELECT fingerprint, published_at, signs_since FROM ssh_authorities
    ORDER BY published_at, fingerprint`;
  return rows.map(({ fingerprint, published_at: publishedAt, signs_since: signsSince }) => ({
    fingerprint,
    publishedAt,
    signsSince,
  }));
}

/**
 * Records that a key is published, once and for all. A key on record keeps its times. If an earlier
 * version recorded it without its public half, the public half is added.
 */
export async function publishAuthority(
  tx: EntityManager,
  fingerprint: string,
  publicKey: Buffer,
): Promise<void> {
  await sql(tx)`
    INSERT INTO ssh_authorities (fingerprint, public_key) VALUES (${fingerprint}, ${publicKey})
    ON CONFLICT (fingerprint) DO UPDATE SET public_key = excluded.public_key
    WHERE ssh_authorities.public_key IS NULL`;
}

/**
 * Records that a published key signs from now on, if it does not yet.
 * @returns false for a key that is not on record, and must not sign
 */
export async function startSigning(tx: EntityManager, fingerprint: string): Promise<boolean> {
  const rows = await sql<{ fingerprint: string }>(tx)`
    UPDATE ssh_authorities SET signs_since = coalesce(signs_since, now())
    WHERE fingerprint = ${fingerprint} RETURNING fingerprint`;
  return rows.length > 0;
}

/**
 * Finds, for each of these keys, the valid certificate that ends last. Keys without one are left
 * out.
 */
export async function lastCertificates(
  tx: EntityManager,
  fingerprints: readonly string[],
): Promise<LastCertificate[]> {
  if (fingerprints.length === 0) return [];
  const rows = await sql<{ ca_fingerprint: string; valid_before: Date }>(tx)`
    SELECT ca_fingerprint, max(valid_before) AS valid_before
    FROM (SELECT ca_fingerprint, valid_before, revoked_at FROM ssh_certificates ORDER BY serial DESC LIMIT ${NEWEST}) newest
    WHERE ca_fingerprint = ANY (${fingerprints}::text[]) AND revoked_at IS NULL AND valid_before > now()
    GROUP BY ca_fingerprint ORDER BY ca_fingerprint`;
  return rows.map((row) => ({ fingerprint: row.ca_fingerprint, validBefore: row.valid_before }));
}
