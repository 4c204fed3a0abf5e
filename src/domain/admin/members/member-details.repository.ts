import { isAfterEnd } from '#domain/access/issuance/standing-rows.repository.js';
import { OTHER } from '#domain/audit/search-keys.js';
import { isInRevokedRange } from '#domain/ssh/serials/revoked-ranges.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The most sessions, applications and GitHub tokens that the record of a member lists: the newest
 * ones. It is also the most applications that the member registered, of which those with the lowest
 * ids are listed. Security keys are always listed in full.
 */
export const MOST_LISTED = 50;

/** The number of certificates that the record of a member lists: the latest ones. */
const CERTIFICATES_LISTED = 5;

/**
 * The number of the newest audit events of a member among which the last login is searched. The
 * limit keeps the search fast.
 */
const EVENTS_READ = 1000;

/** A security key of a member, as the page of the member and the API show it. */
export interface MemberKey {
  readonly id: string;
  readonly name: string;
  readonly aaguid: string | null;
  readonly user_verification: boolean;
  readonly created_at: string;
  readonly last_used_at: string | null;
}

/** A session of a member that has not expired, with its user agent (`device`) and IP address. */
export interface MemberSession {
  readonly id: string;
  readonly device: string | null;
  readonly address: string | null;
  readonly client_id: string | null;
  readonly client_name: string | null;
  readonly hardware_verified: boolean;
  readonly created_at: string;
  readonly expires_at: string;
}

/** An SSH certificate of a member that is not revoked. It may have expired. */
export interface MemberCertificate {
  readonly serial: string;
  readonly principals: readonly string[];
  readonly issued_at: string;
  readonly valid_before: string;
}

/** An application at which a member has a live grant. */
export interface MemberApplication {
  readonly client_id: string;
  readonly name: string | null;
  readonly last_granted_at: string;
}

/** A GitHub token that was issued to a member and has not expired. */
export interface MemberGitHubToken {
  readonly owner: string;
  readonly repositories: readonly string[] | null;
  readonly issued_at: string;
  readonly expires_at: string;
}

/**
 * The security keys of a member, and the sessions, certificates, grants and tokens in the name of
 * the member. Times are RFC 3339.
 */
export interface MemberDetails {
  readonly keys: readonly MemberKey[];
  readonly sessions: readonly MemberSession[];
  readonly certificates: readonly MemberCertificate[];
  readonly applications: readonly MemberApplication[];
  /** The applications that the member registered. */
  readonly owned: readonly { readonly client_id: string; readonly name: string | null }[];
  readonly githubTokens: readonly MemberGitHubToken[];
  readonly lastLoginAt: Date | null;
}

/** Reads the details of a member in one statement, so that all lists show the same moment. */
export async function readDetails(tx: EntityManager, userId: string): Promise<MemberDetails> {
  const [row] = await sql<MemberDetails>(tx)`
    SELECT
      (SELECT coalesce(jsonb_agg(k), '[]') FROM (
         SELECT id, name, aaguid, user_verification, created_at, last_used_at FROM authenticators
         WHERE user_id = ${userId} ORDER BY created_at, id) k) AS keys,
      (SELECT coalesce(jsonb_agg(s), '[]') FROM (
         SELECT s.id, s.user_agent AS device, host(s.ip) AS address, s.client_id,
                c.metadata ->> 'client_name' AS client_name, s.level <> 'bootstrap' AS hardware_verified,
                s.created_at, s.expires_at
         FROM sessions s LEFT JOIN oauth_clients c ON c.id = s.client_id
         WHERE s.user_id = ${userId} AND s.expires_at > now() AND c.kind IS DISTINCT FROM 'removed'
         ORDER BY s.created_at DESC, s.id DESC LIMIT ${MOST_LISTED}) s) AS sessions,
      (SELECT coalesce(jsonb_agg(c), '[]') FROM (
         SELECT serial::text AS serial, principals, issued_at, valid_before
         FROM (SELECT * FROM ssh_certificates WHERE user_id = ${userId} AND revoked_at IS NULL
               ORDER BY serial DESC LIMIT ${CERTIFICATES_LISTED}) newest
         WHERE NOT ${isInRevokedRange(fragment`newest.serial`)} ORDER BY newest.serial DESC) c) AS certificates,
      (SELECT coalesce(jsonb_agg(a), '[]') FROM (
         SELECT g.client_id, c.metadata ->> 'client_name' AS name, max(g.created_at) AS last_granted_at
         FROM oauth_grants g JOIN oauth_clients c ON c.id = g.client_id AND c.kind <> 'removed'
         WHERE g.user_id = ${userId} AND g.expires_at > now() AND ${isAfterEnd(fragment`g`, fragment`c`)}
         GROUP BY g.client_id, c.id ORDER BY max(g.created_at) DESC LIMIT ${MOST_LISTED}) a) AS applications,
      (SELECT coalesce(jsonb_agg(o), '[]') FROM (
         SELECT id AS client_id, coalesce(metadata ->> 'client_name', metadata ->> 'name') AS name
         FROM oauth_clients WHERE owner_id = ${userId} ORDER BY id LIMIT ${MOST_LISTED}) o) AS owned,
      (SELECT coalesce(jsonb_agg(t), '[]') FROM (
         SELECT owner, repositories, issued_at, expires_at FROM github_tokens
         WHERE user_id = ${userId} AND expires_at > now()
         ORDER BY issued_at DESC, id LIMIT ${MOST_LISTED}) t) AS "githubTokens",
      (SELECT max(e.created_at) FROM (
         SELECT e.type, e.created_at FROM audit_events e WHERE e.subject_id = ${userId} AND ${OTHER}
         ORDER BY e.created_at DESC, e.id DESC LIMIT ${EVENTS_READ}) e
       WHERE e.type IN ('login_success', 'enrollment')) AS "lastLoginAt"`;
  if (!row) throw new Error('SELECT returned no row');
  return row;
}
