/**
 * The API tokens of organizations, with which their programs authenticate. A token is valid only
 * while the user who made it is an active admin, and for some days after a demotion of that user.
 */

import { newUuid } from '#platform/clock/random.js';
import { mintOpaqueToken, type OpaqueToken } from '#platform/crypto/opaque-token.js';
import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { replacedBefore } from './replaced-tokens.repository.js';

/** The prefix of an API token, by which a secret scanner recognizes it. */
const API_TOKEN_PREFIX = 'svc_api_';

/**
 * The scope that lets a program rotate (replace by new ones) SCIM tokens. The API token of the
 * program lists which ones.
 */
export const ROTATE_SCOPE = 'scim-tokens:rotate';

/** The scopes of API tokens. Each allows one kind of request. */
export const API_SCOPES = [
  'audit:read',
  'members:read',
  'applications:read',
  'access:read',
  ROTATE_SCOPE,
] as const;

/** One of the {@link API_SCOPES}. */
export type ApiScope = (typeof API_SCOPES)[number];

/**
 * Makes an API token of 256 random bits. The stored hash covers the whole token with its prefix.
 */
export function mintApiToken(): OpaqueToken {
  return mintOpaqueToken(API_TOKEN_PREFIX);
}

/** A program of an organization, which a request identified by its API token. */
export interface Program {
  readonly apiTokenId: string;
  readonly orgId: string;
}

/** An API token, without its secret. */
export interface ApiToken {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly ApiScope[];
  /** The ids of the SCIM tokens that the token may rotate. */
  readonly scimTokenIds: readonly string[];
  /**
   * The networks from which the token is accepted, in CIDR notation; empty if it is accepted from
   * every IP address.
   */
  readonly allowedCidrs: readonly string[];
  /** The days from the creation of the token to its planned expiry. */
  readonly lifetimeDays: number;
  /** The id of the admin who made the token. The admin may have been removed since. */
  readonly createdBy: string;
  readonly createdByEmail: string | null;
  readonly createdAt: Date;
  /** The time of the last use, accurate to the minute; null if the token was never used. */
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date;
  /**
   * The time at which the maker of the token lost the role of admin; null while the maker has it.
   */
  readonly makerDemotedAt: Date | null;
  /** True if the token ended because the access of its maker ended. */
  readonly isOrphan: boolean;
  /** The id of the older token that this token replaces; null if it replaces none. */
  readonly replaces: string | null;
  /** True if the token was revoked; false if it is valid or has only expired. */
  readonly isRevoked: boolean;
  /** The time at which the token ended; null while it is valid. */
  readonly endedAt: Date | null;
}

/** The values of a new API token. The database stores its hash in place of the secret. */
export interface NewApiToken extends Pick<
  ApiToken,
  'name' | 'scopes' | 'scimTokenIds' | 'allowedCidrs' | 'lifetimeDays' | 'createdBy' | 'replaces'
> {
  readonly orgId: string;
  readonly hash: Buffer;
}

interface Row {
  id: string;
  name: string;
  scopes: ApiScope[];
  scim_token_ids: string[];
  allowed_cidrs: string[];
  lifetime_days: number;
  created_by: string;
  created_by_email: string | null;
  created_at: Date;
  last_used_at: Date | null;
  expires_at: Date;
  maker_demoted_at: Date | null;
  is_orphan: boolean;
  replaces: string | null;
  is_revoked: boolean;
  ended_at: Date | null;
}

const COLUMNS = fragment`
  t.id, t.name, t.scopes, t.scim_token_ids, t.allowed_cidrs::text[] AS allowed_cidrs, t.lifetime_days, t.created_by,
  t.created_by_email, t.created_at, t.last_used_at, t.expires_at, t.maker_demoted_at, t.is_orphan, t.replaces,
  t.revoked_at IS NOT NULL AS is_revoked,
  CASE WHEN t.expires_at <= now() THEN least(t.revoked_at, t.expires_at) ELSE t.revoked_at END AS ended_at`;

/** The SQL condition that a token `t` is neither revoked nor expired. */
export const IS_VALID_TOKEN = fragment`t.revoked_at IS NULL AND t.expires_at > now()`;

/**
 * The SQL condition that a token `t` is accepted. It also checks that the user `u` who made the
 * token is active and still an admin, or was demoted. Acts that end the access of the user revoke
 * the tokens as well. This check is a second protection, in case one of these acts does not. A
 * database server that is not yet confirmed after a failover accepts no token.
 */
const IS_ACCEPTED = fragment`${IS_VALID_TOKEN} AND u.id = t.created_by AND u.org_id = t.org_id AND u.active
  AND (t.maker_demoted_at IS NOT NULL OR is_acting_admin(u.org_id, u.email, u.is_org_admin, u.active))
  AND ${CONFIRMED}`;

/** Stores a new API token, which expires in `lifetimeDays` days, and returns it. */
export async function insertApiToken(tx: EntityManager, token: NewApiToken): Promise<ApiToken> {
  const [row] = await sql<Row>(tx)`
    WITH t AS (
      INSERT INTO api_tokens (id, org_id, hash, name, scopes, scim_token_ids, allowed_cidrs, lifetime_days, created_by,
                              created_by_email, expires_at, replaces)
      VALUES (${newUuid()}, ${token.orgId}, ${token.hash}, ${token.name}, ${token.scopes}::text[],
              ${token.scimTokenIds}::uuid[], ARRAY(SELECT network(c::inet) FROM unnest(${token.allowedCidrs}::text[]) c),
              ${token.lifetimeDays}, ${token.createdBy}, (SELECT email FROM users WHERE id = ${token.createdBy}),
              now() + make_interval(hours => 24 * ${token.lifetimeDays}::int), ${token.replaces})
      RETURNING *)
    SELECT ${COLUMNS} FROM t`;
  if (!row) throw new Error('INSERT returned no row');
  return apiToken(row);
}

/** Lists the valid API tokens of an organization, the newest first. */
export async function listApiTokens(tx: EntityManager, orgId: string): Promise<ApiToken[]> {
  const rows = await sql<Row>(tx)`
    SELECT ${COLUMNS} FROM api_tokens t WHERE t.org_id = ${orgId} AND ${IS_VALID_TOKEN} ORDER BY t.id DESC`;
  return rows.map(apiToken);
}

/** Lists the valid API tokens that a user made, the newest first. */
export async function listTokensOfMaker(tx: EntityManager, userId: string): Promise<ApiToken[]> {
  const rows = await sql<Row>(tx)`
    SELECT ${COLUMNS} FROM api_tokens t WHERE t.created_by = ${userId} AND ${IS_VALID_TOKEN} ORDER BY t.id DESC`;
  return rows.map(apiToken);
}

/**
 * Lists the tokens of an organization that ended in the last `days` days, because their makers lost
 * their access or the role of admin. Tokens with a successor are left out. The newest token comes
 * first.
 */
export async function listOrphans(
  tx: EntityManager,
  orgId: string,
  days: number,
): Promise<ApiToken[]> {
  const rows = await sql<Row>(tx)`
    SELECT ${COLUMNS} FROM api_tokens t
    WHERE t.org_id = ${orgId} AND NOT (${IS_VALID_TOKEN}) AND (t.is_orphan OR t.maker_demoted_at IS NOT NULL AND t.revoked_at IS NULL)
      AND least(t.revoked_at, t.expires_at) > now() - make_interval(days => ${days})
      AND NOT EXISTS (SELECT FROM api_tokens n WHERE n.replaces = t.id)
    ORDER BY t.id DESC`;
  return rows.map(apiToken);
}

/**
 * Finds an API token of an organization, valid or not, with the valid token that replaces it.
 * Returns undefined if the organization has no such token.
 */
export async function findApiToken(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<{ readonly token: ApiToken; readonly successor: ApiToken | undefined } | undefined> {
  const rows = await sql<Row>(tx)`
    SELECT ${COLUMNS} FROM api_tokens t
    WHERE t.org_id = ${orgId} AND (t.id = ${id} OR (t.replaces = ${id} AND ${IS_VALID_TOKEN}))`;
  const token = rows.find((row) => row.id === id);
  const successor = rows.find((row) => row.replaces === id);
  return token && { token: apiToken(token), successor: successor && apiToken(successor) };
}

/**
 * Revokes an API token of an organization at once. One statement decides, so that if two admins
 * revoke the token, only one of them gets it returned. Returns undefined for an ended token, and
 * for a token of another organization.
 */
export async function revokeApiToken(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<{ readonly id: string; readonly name: string } | undefined> {
  const [revoked] = await sql<{ id: string; name: string }>(tx)`
    UPDATE api_tokens t SET revoked_at = now() WHERE t.id = ${id} AND t.org_id = ${orgId} AND ${IS_VALID_TOKEN}
    RETURNING t.id, t.name`;
  return revoked;
}

/**
 * Revokes the valid tokens that a token of an organization replaced, directly or through a chain of
 * replacements, and returns them.
 */
export function revokeReplacedTokens(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<{ readonly id: string; readonly name: string }[]> {
  return sql<{ id: string; name: string }>(tx)`
    WITH ${replacedBefore('api_tokens', orgId, id)}
    UPDATE api_tokens t SET revoked_at = now() FROM before b
    WHERE t.id = b.id AND t.org_id = ${orgId} AND ${IS_VALID_TOKEN}
    RETURNING t.id, t.name`;
}

/**
 * Makes a token end after some hours, unless it ends earlier. With 0 hours it ends at once. Returns
 * the time at which the token ends; undefined for a token that has ended already.
 */
export async function endApiTokenAfter(
  tx: EntityManager,
  id: string,
  hours: number,
): Promise<Date | undefined> {
  const [row] = await sql<{ ends_at: Date }>(tx)`
    UPDATE api_tokens t
    SET expires_at = least(expires_at, now() + make_interval(hours => ${hours}::int)),
        revoked_at = CASE WHEN ${hours}::int = 0 THEN now() END
    WHERE t.id = ${id} AND ${IS_VALID_TOKEN}
    RETURNING least(t.revoked_at, t.expires_at) AS ends_at`;
  return row?.ends_at;
}

/**
 * Sets the expiry of a token again, after the database lost the commit that had set it, for example
 * at a failover. Returns false if the organization has no such token, or if the token ends earlier
 * already.
 */
export async function endApiTokenAt(
  tx: EntityManager,
  orgId: string,
  id: string,
  at: Date,
): Promise<boolean> {
  const ended = await sql<{ id: string }>(tx)`
    UPDATE api_tokens SET expires_at = ${at}
    WHERE id = ${id} AND org_id = ${orgId} AND revoked_at IS NULL AND expires_at > ${at} RETURNING id`;
  return ended.length === 1;
}

/** An API token that a request presented, and what the request may do with it. */
export interface PresentedApiToken extends Program {
  readonly name: string;
  readonly scopes: readonly string[];
  /** True if the token is accepted from the IP address of the request. */
  readonly isAllowedHere: boolean;
  /**
   * True if this request recorded the time of the use, or the time at which the IP address was
   * refused. The time of a use is recorded at most once a minute, and that of a refusal at most
   * once an hour.
   */
  readonly isNoted: boolean;
}

/**
 * Finds a valid API token by its hash; undefined if there is none. It records the time of the use
 * at most once a minute, as for SCIM tokens. The caller runs it outside any transaction, so that
 * the row is locked only for a short time. For an IP address that the token does not allow, it
 * records the time of the refusal instead, at most once an hour.
 */
export async function authenticateApiToken(
  tx: EntityManager,
  hash: Buffer,
  address: string | undefined,
): Promise<PresentedApiToken | undefined> {
  const [row] = await sql<PresentedApiToken>(tx)`
    WITH good AS MATERIALIZED (
      SELECT t.id, t.org_id, t.name, t.last_used_at,
             CASE WHEN t.maker_demoted_at IS NULL THEN t.scopes ELSE array_remove(t.scopes, ${ROTATE_SCOPE}) END AS scopes,
             (t.allowed_cidrs = '{}' OR coalesce(${address ?? null}::inet <<= ANY (t.allowed_cidrs), false)) AS is_allowed
      FROM api_tokens t CROSS JOIN users u
      WHERE t.hash = ${hash} AND ${IS_ACCEPTED}
    ), stale AS MATERIALIZED (
      SELECT t.id, g.is_allowed FROM api_tokens t JOIN good g ON g.id = t.id
      WHERE CASE WHEN g.is_allowed THEN t.last_used_at IS NULL OR t.last_used_at < now() - interval '1 minute'
                 ELSE t.refusal_noted_at IS NULL OR t.refusal_noted_at < now() - interval '1 hour' END
      FOR NO KEY UPDATE OF t SKIP LOCKED
    ), touched AS (
      UPDATE api_tokens t
      SET last_used_at = CASE WHEN s.is_allowed THEN now() ELSE t.last_used_at END,
          refusal_noted_at = CASE WHEN s.is_allowed THEN t.refusal_noted_at ELSE now() END
      FROM stale s WHERE t.id = s.id
    )
    SELECT id AS "apiTokenId", org_id AS "orgId", name, scopes, is_allowed AS "isAllowedHere",
           EXISTS (SELECT FROM stale) AS "isNoted" FROM good`;
  return row;
}

/** Returns true if an API token is accepted now. Nothing is locked. */
export async function isApiTokenAccepted(tx: EntityManager, id: string): Promise<boolean> {
  const found = await sql<{ id: string }>(tx)`
    SELECT t.id FROM api_tokens t CROSS JOIN users u WHERE t.id = ${id} AND ${IS_ACCEPTED}`;
  return found.length === 1;
}

/** An API token whose row a transaction has locked, because the token rotates a SCIM token. */
export interface HeldApiToken {
  readonly name: string;
  readonly createdBy: string;
  readonly expiresAt: Date;
  readonly scimTokenIds: readonly string[];
}

/**
 * Locks the admin who made an API token, so that a removal or demotion of the admin waits until the
 * transaction ends. Returns false if the user is no active admin any more.
 */
export async function holdMaker(tx: EntityManager, apiTokenId: string): Promise<boolean> {
  const held = await sql<{ id: string }>(tx)`
    SELECT u.id FROM users u
    WHERE u.id = (SELECT created_by FROM api_tokens WHERE id = ${apiTokenId})
      AND is_acting_admin(u.org_id, u.email, u.is_org_admin, u.active)
    FOR SHARE`;
  return held.length === 1;
}

/**
 * Locks an API token that may rotate SCIM tokens. Returns undefined if the token has ended or lost
 * the scope. The caller has locked the admin who made the token ({@link holdMaker}), and the row of
 * the organization.
 */
export async function lockForRotation(
  tx: EntityManager,
  { apiTokenId, orgId }: Program,
): Promise<HeldApiToken | undefined> {
  const [held] = await sql<HeldApiToken>(tx)`
    SELECT t.name, t.created_by AS "createdBy", t.expires_at AS "expiresAt", t.scim_token_ids AS "scimTokenIds"
    FROM api_tokens t
    WHERE t.id = ${apiTokenId} AND t.org_id = ${orgId} AND ${IS_VALID_TOKEN} AND t.maker_demoted_at IS NULL
      AND ${ROTATE_SCOPE} = ANY (t.scopes)
    FOR NO KEY UPDATE`;
  return held;
}

/**
 * Replaces the id of an old SCIM token by the id of its replacement. This changes each API token of
 * the organization that names the old SCIM token.
 */
export async function followScimToken(
  tx: EntityManager,
  orgId: string,
  oldId: string,
  newId: string,
): Promise<void> {
  await sql(tx)`
    UPDATE api_tokens SET scim_token_ids = array_replace(scim_token_ids, ${oldId}::uuid, ${newId}::uuid)
    WHERE org_id = ${orgId} AND ${oldId}::uuid = ANY (scim_token_ids)`;
}

/** An API token that expires soon, for the log. */
export interface ExpiringApiToken {
  readonly id: string;
  readonly orgId: string;
  readonly name: string;
  readonly expiresAt: Date;
}

/**
 * Returns the valid tokens that expire within `days` days and have no valid successor. Each token
 * is returned only once, because the statement records that it was returned.
 */
export function noteExpiringTokens(tx: EntityManager, days: number): Promise<ExpiringApiToken[]> {
  return sql<ExpiringApiToken>(tx)`
    UPDATE api_tokens t SET expiry_noted_at = now()
    WHERE ${IS_VALID_TOKEN} AND t.expires_at < now() + make_interval(days => ${days}) AND t.expiry_noted_at IS NULL
      AND NOT EXISTS (SELECT FROM api_tokens n
                      WHERE n.replaces = t.id AND n.revoked_at IS NULL AND n.expires_at > t.expires_at)
    RETURNING t.id, t.org_id AS "orgId", t.name, t.expires_at AS "expiresAt"`;
}

/**
 * The number of valid API tokens that expire soon, and the earliest expiry; null if there is none.
 */
export interface ExpiringApiTokens {
  readonly count: number;
  readonly first: Date | null;
}

/**
 * Counts the valid API tokens that expire within `days` days and have no valid successor. Without
 * `orgId`, it counts those of all organizations.
 */
export async function countExpiringTokens(
  tx: EntityManager,
  days: number,
  orgId?: string,
): Promise<ExpiringApiTokens> {
  const [row] = await sql<ExpiringApiTokens>(tx)`
    SELECT count(*)::int AS count, min(t.expires_at) AS first FROM api_tokens t
    WHERE ${IS_VALID_TOKEN} AND t.expires_at < now() + make_interval(days => ${days})
      AND (${orgId ?? null}::uuid IS NULL OR t.org_id = ${orgId ?? null}::uuid)
      AND NOT EXISTS (SELECT FROM api_tokens n
                      WHERE n.replaces = t.id AND n.revoked_at IS NULL AND n.expires_at > t.expires_at)`;
  return row ?? { count: 0, first: null };
}

function apiToken(row: Row): ApiToken {
  return {
    id: row.id,
    name: row.name,
    scopes: row.scopes,
    scimTokenIds: row.scim_token_ids,
    allowedCidrs: row.allowed_cidrs,
    lifetimeDays: row.lifetime_days,
    createdBy: row.created_by,
    createdByEmail: row.created_by_email,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    makerDemotedAt: row.maker_demoted_at,
    isOrphan: row.is_orphan,
    replaces: row.replaces,
    isRevoked: row.is_revoked,
    endedAt: row.ended_at,
  };
}
