/**
 * The SCIM tokens of organizations, with which their identity providers authenticate. An expired or
 * revoked token is not valid.
 */

import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { newUuid } from '#platform/clock/random.js';
import { mintOpaqueToken, type OpaqueToken } from '#platform/crypto/opaque-token.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import { replacedBefore } from '../api-tokens/replaced-tokens.repository.js';

/** The prefix of a SCIM token, by which a secret scanner recognizes it. */
export const SCIM_TOKEN_PREFIX = 'svc_scim_';

/**
 * Makes a SCIM token of 256 random bits. The stored hash covers the whole token with its prefix.
 */
export function mintScimToken(): OpaqueToken {
  return mintOpaqueToken(SCIM_TOKEN_PREFIX);
}

/** A valid SCIM token, without its secret. */
export interface ScimToken {
  readonly id: string;
  readonly description: string;
  /** The id of the admin who created the token. The admin may have been removed since. */
  readonly createdBy: string;
  /** The e-mail address of the admin at the creation; null for a token of an early release. */
  readonly createdByEmail: string | null;
  readonly createdAt: Date;
  /** The time of the last use, accurate to the minute; null if the token was never used. */
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date;
  /** The id of the token that this token replaces; null if it replaces none. */
  readonly replaces: string | null;
}

/** An old token that is being replaced, and the valid token that replaces it. */
export interface TokenRotation {
  readonly old: ScimToken;
  /** The time at which the old token was revoked or expired; null while it is still valid. */
  readonly oldEndedAt: Date | null;
  readonly replacement: ScimToken | null;
}

/** The values of a new SCIM token. The database stores its hash in place of the secret. */
export interface NewScimToken {
  readonly orgId: string;
  /** The SHA-256 of the token. */
  readonly hash: Buffer;
  readonly description: string;
  readonly createdBy: string;
  /** The days until the token expires. */
  readonly expiresInDays: number;
  /**
   * The id of the organization's valid token that the new token replaces; null if it replaces none.
   */
  readonly replaces?: string | null;
}

interface Row {
  id: string;
  description: string;
  created_by: string;
  created_by_email: string | null;
  created_at: Date;
  last_used_at: Date | null;
  expires_at: Date;
  replaces: string | null;
}

const COLUMNS = fragment`
  id, description, created_by, created_by_email, created_at, last_used_at, expires_at, replaces`;

/** Stores a new SCIM token, which expires in `expiresInDays` days, and returns it. */
export async function insertScimToken(tx: EntityManager, token: NewScimToken): Promise<ScimToken> {
  const [row] = await sql<Row>(tx)`
    INSERT INTO scim_tokens (id, org_id, hash, description, created_by, created_by_email, expires_at, replaces)
    VALUES (${newUuid()}, ${token.orgId}, ${token.hash}, ${token.description}, ${token.createdBy},
            (SELECT email FROM users WHERE id = ${token.createdBy}),
            now() + make_interval(hours => 24 * ${token.expiresInDays}), ${token.replaces ?? null})
    RETURNING ${COLUMNS}`;
  if (!row) throw new Error('INSERT returned no row');
  return scimToken(row);
}

/** The values of a SCIM token by which a program replaces another one. */
export interface RotatedScimToken {
  readonly orgId: string;
  readonly hash: Buffer;
  readonly createdBy: string;
  /** The id of the token to replace, which must be valid and have no valid replacement. */
  readonly replaces: string;
  /** The latest time at which the new token expires. */
  readonly notAfter: Date;
}

/**
 * Adds the replacement of a SCIM token, by one statement. The replacement has the description of
 * the old token, and lives at most as long. Returns undefined if the old token is not valid,
 * belongs to another organization, or has a valid replacement already.
 */
export async function insertReplacement(
  tx: EntityManager,
  { orgId, hash, createdBy, replaces, notAfter }: RotatedScimToken,
): Promise<ScimToken | undefined> {
  const [row] = await sql<Row>(tx)`
    INSERT INTO scim_tokens (id, org_id, hash, description, created_by, created_by_email, expires_at, replaces)
    SELECT ${newUuid()}::uuid, o.org_id, ${hash}::bytea, o.description, ${createdBy}::uuid,
           (SELECT email FROM users WHERE id = ${createdBy}),
           least(now() + (o.expires_at - o.created_at), ${notAfter}::timestamptz), o.id
    FROM scim_tokens o
    WHERE o.id = ${replaces} AND o.org_id = ${orgId} AND o.revoked_at IS NULL AND o.expires_at > now()
      AND NOT EXISTS (SELECT FROM scim_tokens n WHERE n.replaces = o.id AND n.revoked_at IS NULL AND n.expires_at > now())
    RETURNING ${COLUMNS}`;
  return row && scimToken(row);
}

/**
 * Revokes the valid tokens that a token of an organization replaced, directly or through a chain of
 * replacements, and returns them.
 */
export function revokeReplaced(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<{ readonly id: string; readonly description: string }[]> {
  return sql<{ id: string; description: string }>(tx)`
    WITH ${replacedBefore('scim_tokens', orgId, id)}
    UPDATE scim_tokens t SET revoked_at = now() FROM before b
    WHERE t.id = b.id AND t.org_id = ${orgId} AND t.revoked_at IS NULL AND t.expires_at > now()
    RETURNING t.id, t.description`;
}

/**
 * Makes a SCIM token end after some hours, unless it ends earlier. With 0 hours it ends at once.
 * Returns the time at which the token ends.
 */
export async function endScimTokenAfter(
  tx: EntityManager,
  id: string,
  hours: number,
): Promise<Date> {
  const [row] = await sql<{ ends_at: Date }>(tx)`
    UPDATE scim_tokens
    SET expires_at = least(expires_at, now() + make_interval(hours => ${hours}::int)),
        revoked_at = CASE WHEN ${hours}::int = 0 THEN now() ELSE revoked_at END
    WHERE id = ${id}
    RETURNING least(revoked_at, expires_at) AS ends_at`;
  if (!row) throw new Error('a locked SCIM token is gone');
  return row.ends_at;
}

/**
 * Sets the expiry of a SCIM token again, after the database lost the commit that had set it, for
 * example at a failover. Returns false if the organization has no such token, or if the token ends
 * earlier already.
 */
export async function endScimTokenAt(
  tx: EntityManager,
  orgId: string,
  id: string,
  at: Date,
): Promise<boolean> {
  const ended = await sql<{ id: string }>(tx)`
    UPDATE scim_tokens SET expires_at = ${at}
    WHERE id = ${id} AND org_id = ${orgId} AND revoked_at IS NULL AND expires_at > ${at} RETURNING id`;
  return ended.length === 1;
}

/**
 * Returns the SCIM token among `ids` that replaces the token `id`, directly or through a chain of
 * replacements; undefined if none of them does.
 */
export async function replacementAmong(
  tx: EntityManager,
  orgId: string,
  ids: readonly string[],
  id: string,
): Promise<string | undefined> {
  const [row] = await sql<{ newest: string }>(tx)`
    WITH RECURSIVE before AS (
      SELECT t.replaces AS id, t.id AS newest FROM scim_tokens t
      WHERE t.id = ANY (${ids}::uuid[]) AND t.org_id = ${orgId} AND t.replaces IS NOT NULL
      UNION
      SELECT t.replaces, b.newest FROM scim_tokens t JOIN before b ON b.id = t.id
      WHERE t.org_id = ${orgId} AND t.replaces IS NOT NULL
    )
    SELECT newest FROM before WHERE id = ${id} LIMIT 1`;
  return row?.newest;
}

/**
 * Returns those of some SCIM tokens that have expired, and were replaced directly or through a
 * chain of replacements by a token that is valid, each with this token.
 */
export function replacementsOfExpired(
  tx: EntityManager,
  orgId: string,
  ids: readonly string[],
): Promise<{ readonly expired: string; readonly present: string }[]> {
  return sql<{ expired: string; present: string }>(tx)`
    WITH RECURSIVE later AS (
      SELECT t.id AS expired, t.id FROM scim_tokens t
      WHERE t.id = ANY (${ids}::uuid[]) AND t.org_id = ${orgId} AND t.revoked_at IS NULL AND t.expires_at <= now()
      UNION
      SELECT l.expired, t.id FROM scim_tokens t JOIN later l ON t.replaces = l.id WHERE t.org_id = ${orgId}
    )
    SELECT DISTINCT ON (l.expired) l.expired, t.id AS present FROM later l JOIN scim_tokens t ON t.id = l.id
    WHERE t.revoked_at IS NULL AND t.expires_at > now() ORDER BY l.expired, t.id`;
}

/** Lists the valid tokens of an organization, the newest first. */
export async function listScimTokens(tx: EntityManager, orgId: string): Promise<ScimToken[]> {
  const rows = await sql<Row>(tx)`
    SELECT ${COLUMNS} FROM scim_tokens
    WHERE org_id = ${orgId} AND revoked_at IS NULL AND expires_at > now()
    ORDER BY id DESC`;
  return rows.map(scimToken);
}

/** Returns true if the organization ever had a SCIM token. */
export async function hadScimToken(tx: EntityManager, orgId: string): Promise<boolean> {
  const found = await sql<{ id: string }>(tx)`
    SELECT id FROM scim_tokens WHERE org_id = ${orgId} LIMIT 1`;
  return found.length === 1;
}

/**
 * Finds a SCIM token of an organization, valid or not, with the valid token that replaces it.
 * Returns undefined if the organization has no such token.
 */
export async function findTokenRotation(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<TokenRotation | undefined> {
  const rows = await sql<Row & { ended_at: Date | null }>(tx)`
    SELECT ${COLUMNS}, CASE WHEN expires_at <= now() THEN least(revoked_at, expires_at) ELSE revoked_at END AS ended_at
    FROM scim_tokens
    WHERE org_id = ${orgId}
      AND (id = ${id} OR (replaces = ${id} AND revoked_at IS NULL AND expires_at > now()))`;
  const old = rows.find((row) => row.id === id);
  const replacement = rows.find((row) => row.replaces === id);
  return (
    old && {
      old: scimToken(old),
      oldEndedAt: old.ended_at,
      replacement: replacement ? scimToken(replacement) : null,
    }
  );
}

/**
 * Revokes a SCIM token of an organization at once, and returns it. One statement decides, so that
 * if two admins revoke the token, only one of them gets it returned. Returns undefined for a
 * revoked or expired token, and for a token of another organization.
 */
export async function revokeScimToken(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<{ readonly id: string; readonly description: string } | undefined> {
  const [revoked] = await sql<{ id: string; description: string }>(tx)`
    UPDATE scim_tokens SET revoked_at = now()
    WHERE id = ${id} AND org_id = ${orgId} AND revoked_at IS NULL AND expires_at > now()
    RETURNING id, description`;
  return revoked;
}

/** A valid SCIM token that a request presented. */
export interface ValidScimToken {
  readonly id: string;
  readonly orgId: string;
}

/**
 * Finds a valid SCIM token by its hash, and changes nothing. Returns undefined if there is none, or
 * if the database server is not yet confirmed after a failover.
 *
 * @returns the token; `isUseOnRecord` is true if a use within the last minute is already recorded,
 *   so that {@link authenticateScimToken} would not record this use
 */
export async function findScimToken(
  tx: EntityManager,
  hash: Buffer,
): Promise<(ValidScimToken & { readonly isUseOnRecord: boolean }) | undefined> {
  const [row] = await sql<{ id: string; org_id: string; is_on_record: boolean }>(tx)`
    SELECT id, org_id,
           coalesce(last_used_at >= now() - interval '1 minute', false) AS is_on_record
    FROM scim_tokens WHERE hash = ${hash} AND revoked_at IS NULL AND expires_at > now()
      AND ${CONFIRMED}`;
  return row && { id: row.id, orgId: row.org_id, isUseOnRecord: row.is_on_record };
}

/**
 * Returns true if a SCIM token, which a request presented a while ago, is still valid. The
 * statement fails on a database server that is not yet confirmed after a failover.
 */
export async function isScimTokenValid(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<boolean> {
  const found = await sql<{ id: string }>(tx)`
    SELECT id FROM scim_tokens
    WHERE id = ${id} AND org_id = ${orgId} AND revoked_at IS NULL AND expires_at > now() AND ${CONFIRMED}`;
  return found.length === 1;
}

/**
 * Finds a valid SCIM token by its hash; undefined if there is none. It records the time of the use
 * at most once a minute, and not while another request has locked the row. The caller runs it
 * outside any transaction, so that the lock is short.
 */
export async function authenticateScimToken(
  tx: EntityManager,
  hash: Buffer,
): Promise<ValidScimToken | undefined> {
  const [row] = await sql<{ id: string; org_id: string }>(tx)`
    WITH good AS MATERIALIZED (
      SELECT id, org_id FROM scim_tokens WHERE hash = ${hash} AND revoked_at IS NULL AND expires_at > now()
        AND ${CONFIRMED}
    ), stale AS MATERIALIZED (
      SELECT t.id FROM scim_tokens t JOIN good g ON g.id = t.id
      WHERE t.last_used_at IS NULL OR t.last_used_at < now() - interval '1 minute'
      FOR NO KEY UPDATE OF t SKIP LOCKED
    ), touched AS (
      UPDATE scim_tokens t SET last_used_at = now() FROM stale s WHERE t.id = s.id
    )
    SELECT id, org_id FROM good`;
  return row && { id: row.id, orgId: row.org_id };
}

function scimToken(row: Row): ScimToken {
  return {
    id: row.id,
    description: row.description,
    createdBy: row.created_by,
    createdByEmail: row.created_by_email,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    replaces: row.replaces,
  };
}
