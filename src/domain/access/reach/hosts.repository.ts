import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';
import {
  ASSIGNED,
  BY_GROUPS,
  hostGroupsOfPeople,
  PEOPLE,
  reachedRows,
} from './reach.repository.js';

/** The names of a group of hosts `r` that a certificate can carry, in the order of its logins. */
const NAMES = fragment`ARRAY(SELECT l || '@' || r.name || ':' || r.org_id FROM unnest(r.logins) l ORDER BY l)`;

/**
 * Writes the CTEs of a request about groups of hosts. `k.host` leaves the groups that match it,
 * `k.names` (null for all) leaves these principals. `carried` has a row for each request and group
 * that admits its user, with its conditions met. `hosts` has one row for each request.
 *
 * @param skips true for a statement that waits for no lock: it then needs {@link DENIAL_OF_MISSED}
 */
export function rowsOfHosts(skips: boolean): SqlFragment {
  return fragment`${reachedRows('hosts')}, named AS MATERIALIZED (
    SELECT r.*, r.touched_at + r.touch_within_seconds AS ends,
      CASE WHEN k.names IS NULL THEN p.names ELSE ARRAY(SELECT x FROM unnest(p.names) WITH ORDINALITY o (x, i) WHERE x = ANY (k.names) ORDER BY i) END AS principals
    FROM reached r JOIN asked k ON k.n = r.n CROSS JOIN LATERAL (SELECT ${NAMES} AS names) p
    WHERE r.is_admitted
  ), carried AS MATERIALIZED (
    SELECT c.n, c.id, c.name, c.principals, c.ends FROM named c WHERE c.is_met AND cardinality(c.principals) > 0
  ), hosts AS MATERIALIZED (
    SELECT k.n, EXISTS (SELECT FROM named c WHERE c.n = k.n) AS is_admitted,
      EXISTS (SELECT FROM named c WHERE c.n = k.n AND c.is_met) AS is_met,
      ARRAY(SELECT o.x FROM carried c, unnest(c.principals) WITH ORDINALITY o (x, i) WHERE c.n = k.n
            ORDER BY c.name COLLATE "C", o.i) AS principals,
      (SELECT to_timestamp(min(c.ends)) FROM carried c WHERE c.n = k.n) AS ends,
      u.n IS NOT NULL AS has_unmet, u.touch_within_seconds, u.models, u.user_verification
    FROM asked k LEFT JOIN LATERAL (
      SELECT c.* FROM named c
      WHERE c.n = k.n AND NOT c.is_met AND (cardinality(c.principals) > 0 OR cardinality(k.names) = 0)
      ORDER BY c.name COLLATE "C" LIMIT 1) u ON true
  )${skips ? fragment`, ${MISSED}` : fragment``}`;
}

/**
 * The rows that may admit and that another transaction has locked: the statement did not get them.
 */
const MISSED = fragment`missed AS MATERIALIZED (
    SELECT h.org_id, NULL::uuid AS user_id FROM access_targets h
    WHERE ${hostGroupsOfPeople(fragment`h`)} AND NOT EXISTS (SELECT FROM target t WHERE t.id = h.id)
    UNION ALL
    SELECT NULL, x.user_id FROM access_assignments x
    WHERE x.target_id = ANY (${ASSIGNED}) AND x.user_id = ANY (${PEOPLE})
      AND NOT EXISTS (SELECT FROM by_person p WHERE p.target_id = x.target_id AND p.user_id = x.user_id)
    UNION ALL
    SELECT NULL, m.user_id FROM access_assignments x JOIN group_members m ON m.group_id = x.group_id
    WHERE x.target_id = ANY (${ASSIGNED}) AND m.user_id = ANY (${PEOPLE}) AND ${BY_GROUPS}
      AND NOT EXISTS (SELECT FROM by_group p WHERE p.target_id = x.target_id AND p.user_id = m.user_id)
  )`;

/**
 * The branch of a CASE for a request that would get fewer groups than its user reaches, because
 * another transaction has locked a row. The request runs again alone, and waits.
 */
export const DENIAL_OF_MISSED = fragment`
  WHEN EXISTS (SELECT FROM missed m WHERE m.org_id = a.org_id OR m.user_id = a.id) THEN 'changed'`;

/**
 * The groups of hosts that a request reaches by its rules, as jsonb: with the patterns, and if the
 * certificate carries them. NULL in an organization without any.
 */
export const REACHED_HOST_GROUPS = fragment`
  CASE WHEN EXISTS (SELECT FROM access_targets h WHERE h.kind = 'host_group' AND h.org_id = a.org_id) THEN (
    SELECT coalesce(jsonb_agg(jsonb_build_object('name', c.name, 'hosts', c.hosts,
      'carried', c.is_met AND cardinality(c.principals) > 0) ORDER BY c.name COLLATE "C"), '[]')
    FROM named c WHERE c.n = k.n) END`;

/** The names of the groups that a decided request `i` carries, as jsonb; NULL without any. */
export const CARRIED_NAMES = fragment`(
  SELECT jsonb_agg(c.name ORDER BY c.name COLLATE "C") FROM carried c WHERE c.n = i.n)`;
