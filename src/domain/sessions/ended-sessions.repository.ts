import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { recordAudit } from '#domain/audit/audit.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { SessionUser } from './session.js';

/**
 * The sessions of a user that ended together, and the numbers of live grants and tokens that ended
 * with them.
 */
export interface EndedSessions {
  readonly sessions: readonly {
    readonly id: string;
    readonly client_id: string | null;
    readonly ip: string | null;
    readonly user_agent: string | null;
  }[];
  readonly grants: number;
  readonly tokens: number;
}

/**
 * Ends the live sessions of a user except one, with every grant, code and token of these sessions.
 * The caller locks the row of the user first, because two calls that delete sessions in different
 * orders could wait for each other.
 *
 * @returns the sessions that ended, and the numbers of their live grants and tokens
 */
export async function deleteOtherSessions(
  tx: EntityManager,
  userId: string,
  keptId: string,
): Promise<EndedSessions> {
  const [ended] = await sql<EndedSessions>(tx)`
    WITH ended AS (
      DELETE FROM sessions WHERE user_id = ${userId} AND id <> ${keptId} AND expires_at > now()
      RETURNING id, client_id, host(ip) AS ip, user_agent
    ), granted AS (
      SELECT id FROM oauth_grants WHERE session_id IN (SELECT id FROM ended) AND expires_at > now()
    )
    SELECT (SELECT coalesce(jsonb_agg(e), '[]') FROM ended e) AS sessions,
           (SELECT count(*)::int FROM granted) AS grants,
           (SELECT count(*)::int FROM oauth_artifacts
            WHERE grant_id IN (SELECT id FROM granted) AND model = 'AccessToken' AND expires_at > now()) AS tokens`;
  return ended ?? { sessions: [], grants: 0, tokens: 0 };
}

/**
 * Records in the audit log that a user ended several own sessions. One statement writes an event
 * for each session.
 */
export async function recordEnds(
  tx: EntityManager,
  user: Pick<SessionUser, 'id' | 'orgId'>,
  sessions: EndedSessions['sessions'],
  origin: AuditOrigin,
): Promise<void> {
  const rows = sessions.map(({ id, client_id, ip, user_agent }) => ({
    id: newUuid(),
    details: {
      session_id: id,
      ...(client_id !== null && { client_id }),
      opened_from: { ip, user_agent },
    },
  }));
  await sql(tx)`${recordAudit(
    {
      id: fragment`e.id`,
      type: 'session_ended',
      actorId: user.id,
      subjectId: user.id,
      orgId: user.orgId,
      origin,
      details: fragment`e.details`,
    },
    fragment`FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS e (id uuid, details jsonb)`,
  )}`;
}

/**
 * Ends the sessions of a user that belong to one client alone (and to no browser), with everything
 * that depends on them. It first locks every session of the user, so that no session ends while the
 * caller ends grants.
 *
 * @returns the number of sessions that had not expired
 */
export async function deleteSessionsOfClient(
  tx: EntityManager,
  userId: string,
  clientId: string,
): Promise<number> {
  await sql(tx)`
    SELECT id FROM sessions WHERE user_id = ${userId} ORDER BY id FOR NO KEY UPDATE`;
  const ended = await sql<{ is_live: boolean }>(tx)`
    DELETE FROM sessions WHERE user_id = ${userId} AND client_id = ${clientId}
    RETURNING expires_at > now() AS is_live`;
  return ended.filter((session) => session.is_live).length;
}

/** Lists by name the clients that have live grants in a session. */
export async function clientsInSession(
  tx: EntityManager,
  sessionId: string,
): Promise<{ readonly id: string; readonly name: string | null }[]> {
  return sql<{ id: string; name: string | null }>(tx)`
    SELECT c.id, c.metadata ->> 'client_name' AS name FROM oauth_clients c
    WHERE c.id IN (SELECT client_id FROM oauth_grants WHERE session_id = ${sessionId} AND expires_at > now())
      AND c.kind <> 'removed'
    ORDER BY name, c.id`;
}

/**
 * Locks the row of a user until the transaction ends. Meanwhile nothing is issued to the user, and
 * no other transaction ends access of the user.
 */
export async function lockUser(tx: EntityManager, userId: string): Promise<void> {
  await sql(tx)`SELECT id FROM users WHERE id = ${userId} FOR UPDATE`;
}
