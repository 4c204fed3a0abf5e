import { fragment } from '#platform/database/statements/sql.js';
import { BY_GROUPS, matchesHost, RULE, TOUCHED } from './reach.repository.js';

/** The people of the requests. */
const PEOPLE = fragment`ARRAY(SELECT of_user FROM asked)`;

/** The names of a group of hosts `h` that a certificate can carry, in the order of its logins. */
const NAMES = fragment`ARRAY(SELECT l || '@' || h.name || ':' || h.org_id FROM unnest(h.logins) l ORDER BY l)`;

/** The names `t.names` that a request `k` leaves. */
const LEFT_NAMES = fragment`CASE WHEN k.names IS NULL THEN t.names
  ELSE ARRAY(SELECT x FROM unnest(t.names) WITH ORDINALITY o (x, i) WHERE x = ANY (k.names) ORDER BY i) END`;

/**
 * The CTEs of a request about groups of hosts. `k.host` leaves the groups that match it, `k.names`
 * (null for all) leaves these principals. `named` has a row for each request and group that admits
 * its user, `carried` those whose conditions are met. `hosts` has one row for each request;
 * `listed` is jsonb.
 *
 * The assigned groups are found by the person, because an organization may have a thousand, and
 * once for all requests of the statement, because its people are often in the same groups.
 * `OFFSET 0` makes PostgreSQL look the assignments of each group up in an index.
 */
export const ROWS_OF_HOSTS = fragment`membership AS MATERIALIZED (
    SELECT m.user_id, m.group_id FROM group_members m WHERE m.user_id = ANY (${PEOPLE}) AND ${BY_GROUPS}
  ), opened AS MATERIALIZED (
    SELECT x.user_id, NULL::uuid AS group_id, x.target_id
    FROM access_assignments x WHERE x.of_hosts AND x.user_id = ANY (${PEOPLE})
    UNION ALL
    SELECT NULL, g.group_id, y.target_id
    FROM (SELECT DISTINCT group_id FROM membership) g CROSS JOIN LATERAL (
      SELECT x.target_id FROM access_assignments x WHERE x.of_hosts AND x.group_id = g.group_id OFFSET 0) y
  ), admitting AS MATERIALIZED (
    SELECT h.*, ${NAMES} AS names FROM access_targets h
    WHERE h.kind = 'host_group' AND h.access = 'everyone' AND h.org_id = ANY (ARRAY(SELECT org_id FROM account))
    UNION ALL
    SELECT h.*, ${NAMES} FROM access_targets h
    WHERE h.id = ANY (ARRAY(SELECT target_id FROM opened)) AND h.kind = 'host_group' AND h.access = 'assigned'
  ), admitted AS MATERIALIZED (
    SELECT a.id AS user_id, h.id AS target_id FROM account a JOIN admitting h ON h.org_id = a.org_id AND h.access = 'everyone'
    UNION
    SELECT a.id, o.target_id FROM account a JOIN opened o ON o.user_id = a.id
    UNION
    SELECT m.user_id, o.target_id FROM membership m JOIN opened o ON o.group_id = m.group_id
  ), named AS MATERIALIZED (
    SELECT r.*, r.touched_at + r.touch_within_seconds AS ends
    FROM (
      SELECT k.n, ${RULE}, t.name, t.hosts, ${LEFT_NAMES} AS principals, cardinality(k.names) = 0 AS names_none, ${TOUCHED}
      FROM asked k JOIN account a ON a.id = k.of_user JOIN admitted d ON d.user_id = a.id
      JOIN admitting t ON t.id = d.target_id AND t.org_id = a.org_id
      LEFT JOIN session s ON s.id = k.of_session AND s.user_id = a.id
      WHERE k.host IS NULL OR ${matchesHost(fragment`t`, fragment`k.host`)}
    ) r
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

/**
 * The groups of hosts that a request reaches by its rules, as jsonb: with the patterns, and if the
 * certificate carries them. NULL in an organization without any.
 */
export const REACHED_HOST_GROUPS = fragment`
  CASE WHEN EXISTS (SELECT FROM access_targets h WHERE h.kind = 'host_group' AND h.org_id = a.org_id) THEN r.listed END`;

/** The names of the groups that a request carries, as jsonb; NULL without any. */
export const CARRIED_NAMES = fragment`r.carried_names`;
