import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { SessionOrigin } from './session.js';

/**
 * The values of a session that belongs to a client alone. The client gets it because the user
 * authorized the client in a browser session.
 */
export interface NewOwnSession {
  readonly id: string;
  readonly tokenHash: Buffer;
  readonly clientId: string;
  /**
   * The time, in seconds since 1970, at which the user touched the security key to authorize the
   * client.
   */
  readonly authTime: number | undefined;
  readonly from: SessionOrigin;
}

/** The grant of an authorization, with its user and the browser session to which it belongs. */
export interface BrowserGrant {
  readonly id: Buffer;
  readonly userId: string;
  readonly sessionId: string;
}

/**
 * A user's session that belongs to one client alone, so that it does not end with the session of
 * the browser. `sid` names the session in ID tokens; null if it has no such name.
 */
export interface OpenedOwnSession {
  readonly id: string;
  readonly expires_at: Date;
  readonly sid: string | null;
}

/**
 * Opens a session that belongs to a client alone, and moves the grant of the client from the
 * browser session to it. One statement locks the user, the browser session and the grant, in this
 * order. If the grant ends soon because its code was used twice, it still ends then. If the grant
 * was moved before, it keeps its session.
 *
 * @param hours SVC_SESSION_HOURS, the length of the new session
 * @returns the session of the grant; undefined if the user, the browser session or the grant has
 *   ended
 */
export async function openOwnSession(
  tx: EntityManager,
  hours: number,
  { id: grantId, userId, sessionId }: BrowserGrant,
  { id, tokenHash, clientId, authTime, from }: NewOwnSession,
): Promise<OpenedOwnSession | undefined> {
  const [own] = await sql<OpenedOwnSession>(tx)`
    WITH account AS MATERIALIZED (
      SELECT id FROM users WHERE id = ${userId} AND active FOR SHARE
    ), browser AS MATERIALIZED (
      SELECT s.* FROM sessions s
      WHERE s.id = ${sessionId} AND s.user_id IN (SELECT id FROM account) AND s.level <> 'bootstrap' AND s.expires_at > now()
      FOR SHARE OF s
    ), granted AS MATERIALIZED (
      SELECT g.id, CASE WHEN g.payload ? 'ends_soon' THEN g.expires_at ELSE now() + make_interval(hours => ${hours}) END AS ends
      FROM oauth_grants g
      WHERE g.id = ${grantId} AND g.session_id IN (SELECT id FROM browser) AND g.expires_at > now()
      FOR NO KEY UPDATE OF g
    ), opened AS (
      INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, client_id, amr, acr, auth_time, touches, ip,
                            user_agent, expires_at)
      SELECT ${id}, ${tokenHash}, b.level, b.user_id, b.authenticator_id, ${clientId}, b.amr, b.acr,
             least(b.auth_time, to_timestamp(${authTime ?? null}::float8 + 1)),
             coalesce((SELECT jsonb_object_agg(x.key, x.value) FROM jsonb_each(b.touches) x
               WHERE ${authTime ?? null}::float8 IS NULL OR (x.value ->> 'at')::float8 <= ${authTime ?? null}::float8 + 1), '{}'),
             ${from.ip ?? null}, ${from.userAgent ?? null}, g.ends
      FROM browser b CROSS JOIN granted g WHERE b.client_id IS NULL
      RETURNING id, expires_at, sid, authenticator_id
    ), signed_in AS (
      INSERT INTO client_sign_ins (sid, client_id, user_id, session_key)
      SELECT o.sid, ${clientId}, ${userId}, o.authenticator_id FROM opened o
    ), moved AS (
      UPDATE oauth_grants g
      SET session_id = o.id, expires_at = o.expires_at,
          payload = jsonb_set(g.payload, '{exp}', to_jsonb(floor(extract(epoch FROM o.expires_at))::bigint))
      FROM opened o WHERE g.id = ${grantId}
    )
    SELECT id, expires_at, sid FROM opened WHERE ${CONFIRMED}
    UNION ALL
    SELECT b.id, b.expires_at, b.sid FROM browser b CROSS JOIN granted WHERE b.client_id IS NOT NULL`;
  return own;
}

/**
 * Returns true if an approved device code opened a session. Such a session meets no condition of a
 * target, because the user touched no security key in it.
 */
export async function isSessionOfDevice(tx: EntityManager, id: string): Promise<boolean> {
  const [row] = await sql<{ of_device: boolean }>(tx)`
    SELECT of_device FROM sessions WHERE id = ${id}`;
  return row?.of_device === true;
}
