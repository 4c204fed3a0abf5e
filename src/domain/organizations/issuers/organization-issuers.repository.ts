/**
 * Stores the token issuers of organizations: the label in the host name of each, and its signing
 * keys. The caller locks the row of the organization before a change.
 */

import type { JWK } from 'jose';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { sql } from '#platform/database/statements/sql.js';
import { PUBLISHED_AFTER_MINUTES, PUBLISHED_BEFORE_HOURS } from './issuer-key-state.js';

/** A signing key of an issuer, without its private part. */
export interface IssuerKey {
  readonly kid: string;
  readonly createdAt: Date;
  readonly signsFrom: Date;
  readonly publishedUntil: Date | null;
}

/** The token issuer that an organization has now. */
export interface OrganizationIssuer {
  readonly label: string;
  readonly claimedAt: Date;
  /**
   * True if this issuer issues the AWS tokens of the organization; false if the service's own
   * issuer does.
   */
  readonly active: boolean;
  /** The time of the database, by which the states of the keys are decided. */
  readonly now: Date;
  readonly keys: readonly IssuerKey[];
}

/** A new signing key of an issuer, with its private part encrypted. */
export interface NewIssuerKey {
  readonly orgId: string;
  readonly label: string;
  readonly kid: string;
  readonly publicJwk: JWK;
  /** The private key, encrypted under the document key. */
  readonly sealed: Buffer;
  readonly documentKeyId: string;
}

/**
 * Finds the issuer of an organization, with its keys from the newest to the oldest; undefined if
 * the organization has none now.
 */
export async function findIssuer(
  tx: EntityManager,
  orgId: string,
): Promise<OrganizationIssuer | undefined> {
  const [row] = await sql<OrganizationIssuer>(tx)`
    SELECT label, claimed_at AS "claimedAt", active_since IS NOT NULL AS active, statement_timestamp() AS now
    FROM organization_issuers WHERE org_id = ${orgId} AND released_at IS NULL`;
  if (!row) return undefined;
  const keys = await sql<IssuerKey>(tx)`
    SELECT kid, created_at AS "createdAt", signs_from AS "signsFrom", published_until AS "publishedUntil"
    FROM organization_issuer_keys WHERE label = ${row.label} AND org_id = ${orgId}
    ORDER BY signs_from DESC, kid`;
  return { ...row, keys };
}

/** Returns true if another organization has the label now or had it in the past. */
export async function isForeignLabel(
  tx: EntityManager,
  orgId: string,
  label: string,
): Promise<boolean> {
  const [row] = await sql<{ label: string }>(tx)`
    SELECT label FROM organization_issuers
    WHERE label = ${label} AND org_id IS DISTINCT FROM ${orgId}::uuid`;
  return row !== undefined;
}

/** Counts the labels that an organization has or had in the past, except the given label. */
export async function countOtherLabels(
  tx: EntityManager,
  orgId: string,
  label: string,
): Promise<number> {
  const [row] = await sql<{ n: number }>(tx)`
    SELECT count(*)::int AS n FROM organization_issuers WHERE org_id = ${orgId} AND label <> ${label}`;
  return row?.n ?? 0;
}

/**
 * Claims a label for an organization. The label must be new, or one that this organization
 * released. If several organizations claim a label at once, the first one to commit keeps it
 * forever. Returns false if the label cannot be claimed.
 */
export async function claimLabel(
  tx: EntityManager,
  orgId: string,
  label: string,
  active: boolean,
): Promise<boolean> {
  const claimed = await sql<{ label: string }>(tx)`
    INSERT INTO organization_issuers AS l (label, org_id, claimed_at, active_since)
    SELECT ${label}, ${orgId}::uuid, t.at, CASE WHEN ${active}::boolean THEN t.at END
    FROM (SELECT statement_timestamp() AS at) t
    ON CONFLICT (label) DO UPDATE
      SET claimed_at = EXCLUDED.claimed_at, active_since = EXCLUDED.active_since, released_at = NULL
      WHERE l.org_id = EXCLUDED.org_id AND l.released_at IS NOT NULL
    RETURNING label`;
  return claimed.length === 1;
}

/**
 * Releases a label and deletes its keys, so that its host publishes nothing any more. The row
 * stays, so that no other organization can ever claim the label.
 */
export async function releaseLabel(tx: EntityManager, orgId: string, label: string): Promise<void> {
  await sql(tx)`
    WITH gone AS (DELETE FROM organization_issuer_keys WHERE label = ${label} AND org_id = ${orgId})
    UPDATE organization_issuers SET released_at = statement_timestamp(), active_since = NULL
    WHERE label = ${label} AND org_id = ${orgId} AND released_at IS NULL`;
}

/**
 * Sets if the AWS tokens of an organization come from its own issuer. Returns false if nothing
 * changed.
 */
export async function setIssuerActive(
  tx: EntityManager,
  orgId: string,
  active: boolean,
): Promise<boolean> {
  const changed = await sql<{ label: string }>(tx)`
    UPDATE organization_issuers
    SET active_since = CASE WHEN ${active}::boolean THEN statement_timestamp() END
    WHERE org_id = ${orgId} AND released_at IS NULL AND (active_since IS NOT NULL) <> ${active}::boolean
    RETURNING label`;
  return changed.length === 1;
}

/** Adds a signing key that is used from now on. */
export async function insertIssuerKey(tx: EntityManager, key: NewIssuerKey): Promise<void> {
  await sql(tx)`
    INSERT INTO organization_issuer_keys
      (kid, org_id, label, public_jwk, sealed, document_key_id, created_at, signs_from)
    VALUES (${key.kid}, ${key.orgId}, ${key.label}, ${JSON.stringify(key.publicJwk)}::jsonb, ${key.sealed},
            ${key.documentKeyId}, statement_timestamp(), statement_timestamp())`;
}

/**
 * Adds the next signing key, which is published now and signs later. For the present key, it stores
 * the time at which its publication ends. Returns false if there is a next key already.
 */
export async function insertNextIssuerKey(tx: EntityManager, key: NewIssuerKey): Promise<boolean> {
  const added = await sql<{ kid: string }>(tx)`
    WITH times AS (
      SELECT statement_timestamp() AS at,
             statement_timestamp() + make_interval(hours => ${PUBLISHED_BEFORE_HOURS}::int) AS signs_from
    ), added AS (
      INSERT INTO organization_issuer_keys
        (kid, org_id, label, public_jwk, sealed, document_key_id, created_at, signs_from)
      SELECT ${key.kid}, ${key.orgId}::uuid, ${key.label}, ${JSON.stringify(key.publicJwk)}::jsonb,
             ${key.sealed}::bytea, ${key.documentKeyId}::uuid, t.at, t.signs_from
      FROM times t
      WHERE NOT EXISTS (SELECT FROM organization_issuer_keys y
                        WHERE y.label = ${key.label} AND y.signs_from > t.at)
      RETURNING kid, signs_from
    ), ended AS (
      UPDATE organization_issuer_keys y
      SET published_until = a.signs_from + make_interval(mins => ${PUBLISHED_AFTER_MINUTES}::int)
      FROM added a WHERE y.label = ${key.label} AND y.published_until IS NULL
    )
    SELECT kid FROM added`;
  return added.length === 1;
}

/**
 * Withdraws every signing key of a label at once. A withdrawn key is not published, signs nothing,
 * and its private part is deleted. Returns the ids of the withdrawn keys.
 */
export async function withdrawIssuerKeys(
  tx: EntityManager,
  orgId: string,
  label: string,
): Promise<string[]> {
  const gone = await sql<{ kid: string }>(tx)`
    DELETE FROM organization_issuer_keys WHERE label = ${label} AND org_id = ${orgId} RETURNING kid`;
  return gone.map(({ kid }) => kid).toSorted();
}
