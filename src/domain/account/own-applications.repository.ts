import type { ClientKind } from '#domain/oauth/clients/clients.repository.js';
import { isAfterEnd } from '#domain/access/issuance/standing-rows.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The most applications that the list of a user shows. */
const MOST_SHOWN = 500;

/**
 * The most live grants of an application of which the list shows the scopes, the newest first. A
 * user may have tens of thousands, each of several kilobytes.
 */
const MOST_GRANTS = 100;

/** A row of {@link listOwnApplications}: an application, and the live grants of the user to it. */
export interface OwnApplicationRow {
  readonly id: string;
  readonly kind: ClientKind;
  readonly name: string | null;
  readonly redirectUris: unknown;
  /**
   * The scopes of the newest live grants of the user to the application, from the payloads that the
   * OAuth library stored: `openid`, and the texts of `resources` without the names of the
   * resources. It is null if there is no live grant.
   */
  readonly grants: readonly Readonly<Record<string, unknown>>[] | null;
  readonly consentedAt: Date | null;
  readonly since: Date;
  readonly lastUsedAt: Date | null;
}

/**
 * The numbers of sessions, grants and tokens that ended when a user ended the access of an
 * application.
 */
export interface EndedAccess {
  readonly sessions: number;
  readonly grants: number;
  readonly tokens: number;
}

/** The FROM clause of the live grants `g` that did not end with all grants of their client `c`. */
const LIVE_GRANTS = fragment`
  FROM oauth_grants g JOIN oauth_clients c ON c.id = g.client_id AND c.kind <> 'removed'
  WHERE g.expires_at > now() AND ${isAfterEnd(fragment`g`, fragment`c`)}`;

/**
 * Lists, sorted by name, the clients to which a user consented or which have a live grant of the
 * user.
 */
export function listOwnApplications(
  tx: EntityManager,
  userId: string,
): Promise<OwnApplicationRow[]> {
  return sql<OwnApplicationRow>(tx)`
    WITH granted AS (
      SELECT g.client_id, min(g.created_at) AS first_at, max(g.created_at) AS last_at
      ${LIVE_GRANTS} AND g.user_id = ${userId} GROUP BY g.client_id
    ), known AS (
      SELECT coalesce(g.client_id, o.client_id) AS client_id, g.first_at, g.last_at, o.consented_at
      FROM granted g
      FULL JOIN (SELECT client_id, consented_at FROM oauth_consents WHERE user_id = ${userId}) o ON o.client_id = g.client_id
    )
    SELECT c.id, c.kind, c.metadata ->> 'client_name' AS name, c.metadata -> 'redirect_uris' AS "redirectUris",
           (SELECT jsonb_agg(jsonb_build_object(
                     'openid', n.payload -> 'openid',
                     'resources', jsonb_path_query_array(n.payload, '$.resources.*')))
            FROM (SELECT g.payload FROM oauth_grants g
                  WHERE g.user_id = ${userId} AND g.client_id = c.id AND g.expires_at > now()
                    AND ${isAfterEnd(fragment`g`, fragment`c`)}
                  ORDER BY g.created_at DESC LIMIT ${MOST_GRANTS}) n) AS grants, k.consented_at AS "consentedAt", least(k.first_at, k.consented_at) AS since,
           greatest(k.last_at, (SELECT max(a.created_at) FROM oauth_artifacts a
                                WHERE a.user_id = ${userId} AND a.client_id = c.id
                                  AND ${isAfterEnd(fragment`a`, fragment`c`)})) AS "lastUsedAt"
    FROM known k JOIN oauth_clients c ON c.id = k.client_id AND c.kind <> 'removed'
    ORDER BY c.metadata ->> 'client_name', c.id LIMIT ${MOST_SHOWN}`;
}

/**
 * Counts the clients to which a user consented or which have a live grant of the user; it counts up
 * to {@link MOST_SHOWN}.
 */
export async function countOwnApplications(tx: EntityManager, userId: string): Promise<number> {
  const [row] = await sql<{ n: number }>(tx)`
    SELECT count(*)::int AS n FROM (
      SELECT g.client_id ${LIVE_GRANTS} AND g.user_id = ${userId}
      UNION
      SELECT o.client_id FROM oauth_consents o JOIN oauth_clients c ON c.id = o.client_id
      WHERE o.user_id = ${userId} AND c.kind <> 'removed' LIMIT ${MOST_SHOWN}
    ) known`;
  return row?.n ?? 0;
}

/** Counts the live grants and access tokens with which a client acts in the name of a user. */
export async function countOwnAccess(
  tx: EntityManager,
  userId: string,
  clientId: string,
): Promise<Omit<EndedAccess, 'sessions'>> {
  const [live] = await sql<Omit<EndedAccess, 'sessions'>>(tx)`
    SELECT (SELECT count(*)::int FROM oauth_grants
            WHERE user_id = ${userId} AND client_id = ${clientId} AND expires_at > now()) AS grants,
           (SELECT count(*)::int FROM oauth_artifacts
            WHERE user_id = ${userId} AND client_id = ${clientId} AND model = 'AccessToken' AND expires_at > now()) AS tokens`;
  return live ?? { grants: 0, tokens: 0 };
}

/**
 * Ends the grants of a user to a client with everything that depends on them, and deletes the
 * consent. The caller has locked the row of the user, so that nothing is issued meanwhile. The
 * caller has also locked the sessions of the user. Every transaction locks sessions before grants,
 * so that no two transactions deadlock.
 *
 * @returns false if there was no consent
 */
export async function endOwnGrants(
  tx: EntityManager,
  userId: string,
  clientId: string,
): Promise<boolean> {
  await sql(tx)`DELETE FROM oauth_grants WHERE user_id = ${userId} AND client_id = ${clientId}`;
  await sql(tx)`DELETE FROM oauth_artifacts WHERE user_id = ${userId} AND client_id = ${clientId}`;
  const consents = await sql<{ client_id: string }>(tx)`
    DELETE FROM oauth_consents WHERE user_id = ${userId} AND client_id = ${clientId} RETURNING client_id`;
  return consents.length > 0;
}
