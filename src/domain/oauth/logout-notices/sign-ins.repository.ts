import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';

/**
 * The days for which the service remembers that a client got a grant of a person. During this time
 * it can notify the client of a logout.
 */
export const SIGN_IN_DAYS = 400;

/**
 * The SQL that records, in the statement that writes grants, which client got a grant in which
 * session. A database trigger keeps only the newest 20 sessions of a person at a client. The time
 * of a row is renewed at most once an hour, so that most grants neither write nor lock a row here.
 */
export const RECORDED_SIGN_IN = fragment`
  INSERT INTO client_sign_ins AS r (sid, client_id, user_id, session_key)
  SELECT DISTINCT i.sid, i.client_id, i.user_id, i.session_key
  FROM decided i
  WHERE i.is_issued AND i.sid IS NOT NULL AND NOT EXISTS (
    SELECT FROM client_sign_ins x
    WHERE x.sid = i.sid AND x.client_id = i.client_id AND x.last_at >= now() - interval '1 hour' OFFSET 0)
  ORDER BY i.sid, i.client_id
  ON CONFLICT (sid, client_id) DO UPDATE SET last_at = now() WHERE r.last_at < now() - interval '1 hour'`;

/**
 * Returns the SQL that queues notices to the clients of sessions that now expire earlier. It is
 * needed because the trigger that usually queues notices reacts only to deleted sessions.
 *
 * @param ended the name of a CTE with the column `sid`
 */
export function noticesOfSessions(ended: SqlFragment): SqlFragment {
  return fragment`
    INSERT INTO logout_notices (client_id, self_registered, tenant_id, user_id, sid)
    SELECT c.id, c.kind = 'dynamic', coalesce(c.org_id, c.owner_id), r.user_id, r.sid
    FROM ${ended} e JOIN client_sign_ins r ON r.sid = e.sid JOIN oauth_clients c ON c.id = r.client_id
    WHERE c.metadata ? 'backchannel_logout_uri'
    ORDER BY r.sid, c.id`;
}
