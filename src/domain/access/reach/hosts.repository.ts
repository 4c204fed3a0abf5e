import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';
import { reachedRows } from './reach.repository.js';

/** The names of a group of hosts `r` that a certificate can carry, in the order of its logins. */
const NAMES = fragment`ARRAY(SELECT l || '@' || r.name || ':' || r.org_id FROM unnest(r.logins) l ORDER BY l)`;

/**
 * Writes the CTEs of a request about groups of hosts. `k.host` leaves the groups that match it,
 * `k.names` (null for all) leaves these principals. `carried` has a row for each request and group
 * that admits its user, with its conditions met. `hosts` has one row for each request with a group
 * that admits its user; `listed` is jsonb.
 */
export function rowsOfHosts(): SqlFragment {
  return fragment`${reachedRows('hosts')}, named AS MATERIALIZED (
    SELECT r.*, r.touched_at + r.touch_within_seconds AS ends, k.names IS NOT NULL AND cardinality(k.names) = 0 AS names_none,
      CASE WHEN k.names IS NULL THEN p.names ELSE ARRAY(SELECT x FROM unnest(p.names) WITH ORDINALITY o (x, i) WHERE x = ANY (k.names) ORDER BY i) END AS principals
    FROM reached r JOIN asked k ON k.n = r.n CROSS JOIN LATERAL (SELECT ${NAMES} AS names) p
    WHERE r.is_admitted
  ), carried AS MATERIALIZED (
    SELECT c.n, c.id, c.name, c.principals, c.ends FROM named c WHERE c.is_met AND cardinality(c.principals) > 0
  ), unmet AS MATERIALIZED (
    SELECT DISTINCT ON (c.n) c.n, c.touch_within_seconds, c.models, c.user_verification FROM named c
    WHERE NOT c.is_met AND (cardinality(c.principals) > 0 OR c.names_none)
    ORDER BY c.n, c.name COLLATE "C"
  ), hosts AS MATERIALIZED (
    SELECT k.n, g.n IS NOT NULL AS is_admitted, coalesce(g.is_met, false) AS is_met, coalesce(p.principals, '{}') AS principals,
      p.carried_names, to_timestamp(p.ends) AS ends, coalesce(g.listed, '[]') AS listed,
      u.n IS NOT NULL AS has_unmet, u.touch_within_seconds, u.models, u.user_verification
    FROM asked k
    LEFT JOIN (
      SELECT c.n, bool_or(c.is_met) AS is_met, jsonb_agg(jsonb_build_object('name', c.name, 'hosts', c.hosts,
        'carried', c.is_met AND cardinality(c.principals) > 0) ORDER BY c.name COLLATE "C") AS listed
      FROM named c GROUP BY c.n) g ON g.n = k.n
    LEFT JOIN (
      SELECT c.n, array_agg(o.x ORDER BY c.name COLLATE "C", o.i) AS principals, min(c.ends) AS ends,
        jsonb_agg(c.name ORDER BY c.name COLLATE "C") FILTER (WHERE o.i = 1) AS carried_names
      FROM carried c CROSS JOIN LATERAL unnest(c.principals) WITH ORDINALITY o (x, i) GROUP BY c.n) p ON p.n = k.n
    LEFT JOIN unmet u ON u.n = k.n
  )`;
}

/**
 * The groups of hosts that a request reaches by its rules, as jsonb: with the patterns, and if the
 * certificate carries them. NULL in an organization without any.
 */
export const REACHED_HOST_GROUPS = fragment`
  CASE WHEN EXISTS (SELECT FROM access_targets h WHERE h.kind = 'host_group' AND h.org_id = a.org_id) THEN r.listed END`;

/** The names of the groups that a request carries, as jsonb; NULL without any. */
export const CARRIED_NAMES = fragment`r.carried_names`;
