/**
 * The keys of the SSH certificate authority that this database has recorded. The service does not
 * start with any other signing key.
 */

import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { sql } from '#platform/database/statements/sql.js';

/** A key of the SSH certificate authority, as the database has recorded it. */
export interface RecordedAuthority {
  readonly fingerprint: string;
  readonly publishedAt: Date;
  /**
   * The time of the first start with this key as the signing key; null for a key that was only
   * published.
   */
  readonly signsSince: Date | null;
}

/** The latest expiry among the valid certificates of one key. */
export interface LastCertificate {
  readonly fingerprint: string;
  readonly validBefore: Date;
}

/**
 * The number of newest certificates in which {@link lastCertificates} searches, so that the query
 * does not read the whole table. A deployment issues fewer certificates than this within the
 * longest validity of a certificate, so all older certificates have expired.
 */
const NEWEST = 200_000;

/**
 * Takes a lock until the transaction ends, so that if several processes start, only one at a time
 * checks and records the keys.
 */
export async function lockAuthorities(tx: EntityManager): Promise<void> {
  await sql(tx)`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.sshAuthority})`;
}

/** Reads every key of the authority that the database has recorded, the oldest first. */
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
 * Records that a key is published, which means that hosts are told to trust it. If the key is
 * recorded already, its times stay the same. If an earlier version recorded it without its public
 * half, the public half is added.
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
 * Records that a published key signs from now on, if that is not recorded yet.
 *
 * @returns false for a key that the database does not know, and that must not sign
 */
export async function startSigning(tx: EntityManager, fingerprint: string): Promise<boolean> {
  const rows = await sql<{ fingerprint: string }>(tx)`
    UPDATE ssh_authorities SET signs_since = coalesce(signs_since, now())
    WHERE fingerprint = ${fingerprint} RETURNING fingerprint`;
  return rows.length > 0;
}

/**
 * Finds, for each of the given keys, the latest expiry of its valid certificates. Keys without a
 * valid certificate are left out.
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
